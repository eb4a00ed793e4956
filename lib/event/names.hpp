#pragma once

#include <abxbus/modes.hpp>
#include <abxbus/timestamp.hpp>
#include <abxbus/uuid.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Names, labels and numbers as they stand in messages and documents.
namespace abxbus::detail {

/// Number of code points; nothing when the text is not valid UTF-8.
std::optional<std::size_t> count_code_points(std::string_view text) noexcept;

/// D-NAME-1: a letter, then letters, digits and `_`; every character beyond ASCII is a letter.
bool is_identifier(std::string_view text) noexcept;

/// D-EVT-5: an identifier of at most 64 code points.
bool is_event_type(std::string_view text) noexcept;
/// Throws ValidationError of the field `event_type` unless `is_event_type`.
void check_event_type(std::string_view text);

/// Throws ValidationError with the text of S-BUS-9 unless `is_identifier`.
void check_bus_name(std::string_view name);

/// D-EVT-11: what an entry of `event_path` must look like.
bool is_bus_label(std::string_view text) noexcept;

/// The last four characters, or all of a shorter text.
std::string_view last4(std::string_view text) noexcept;

/// D-LBL-1: `{name}#{last 4 of the id}`.
std::string bus_label(std::string_view name, std::string_view id);
/// D-LBL-2: `{handler_name}#{last 4 of the id}`.
std::string handler_label(std::string_view handler_name, std::string_view handler_id);
/// D-LBL-2: `{handler_name}()` or `function#{last 4}()`, then ` @ {path}` when there is one. `handler_id` is needed for
/// the name `anonymous` only.
std::string handler_display(std::string_view handler_name, std::string_view handler_id, std::string_view file_path);
/// D-LBL-3: `{event_type}#{last 4 of the id}`.
std::string event_label(std::string_view event_type, const Uuid& event_id);

/// The shortest decimal that reads back to the same value, never padded, never with an exponent: `0.05`, `5` (T-CNV-2).
std::string seconds_text(Seconds seconds);
/// With that many decimals: `0.1`, `12.50`.
std::string fixed_text(double value, int decimals);

}  // namespace abxbus::detail

#pragma once

#include <abxbus/timestamp.hpp>
#include <abxbus/uuid.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

/// The text forms of ids and times, for code that has a buffer of its own or reports errors in its own words.
namespace abxbus::detail {

/// Writes Uuid::text_size characters and no terminator.
void write_text(const Uuid& id, char* out) noexcept;
/// Nothing for what `Uuid::parse` rejects.
std::optional<Uuid> parse_uuid(std::string_view text) noexcept;

/// Writes Timestamp::text_size characters and no terminator.
void write_text(Timestamp time, char* out) noexcept;
/// Nothing for what `Timestamp::parse` rejects.
std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept;

/// A clock reading as a timestamp.
constexpr Timestamp to_timestamp(std::int64_t ns) noexcept {
  return Timestamp::from_unix_ns(static_cast<std::uint64_t>(ns));
}
/// The inverse; times after April 2262 come out negative, and `to_timestamp` gives them back.
constexpr std::int64_t to_ns(Timestamp time) noexcept {
  return static_cast<std::int64_t>(time.unix_ns());
}

}  // namespace abxbus::detail

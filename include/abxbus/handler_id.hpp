#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace abxbus {

/// The id of a handler: a UUIDv5 of what identifies its registration, the same in every runtime (D-ID-5).
///
/// `registered_at` is the form of 30 characters. An unset or empty path counts as `unknown`. Costs about 2 microseconds
/// (SHA-1). Any thread.
std::string compute_handler_id(std::string_view bus_id, std::string_view name,
                               std::optional<std::string_view> file_path, std::string_view registered_at,
                               std::string_view pattern);

}  // namespace abxbus

#pragma once

#include <abxbus/log.hpp>

#include <string>

namespace abxbus::detail {

/// Whether a message of the level would be given to the sink: saves making its text.
bool log_enabled(LogLevel level) noexcept;

/// Gives the message to the sink when its level is high enough. The caller holds no lock of the library: the sink is
/// user code. Never throws.
void log(LogLevel level, const std::string& text) noexcept;

}  // namespace abxbus::detail

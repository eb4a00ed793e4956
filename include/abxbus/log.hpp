#pragma once

#include <functional>
#include <string_view>

namespace abxbus {

enum class LogLevel { debug, info, warning, error };

/// Receives what the library logs from now on (T-CNV-7); an empty function restores the default, which writes to
/// standard error.
///
/// Threads: any. The sink may be called from any thread, from several at once, and never while a lock of the library
/// is held, so it may call everything. A call in progress in another thread may still use the sink before this one.
/// What it throws is dropped.
void set_log_sink(std::function<void(LogLevel, std::string_view text)> sink);

/// Messages below the level are dropped unformatted. Default: `warning`. Any thread.
void set_log_level(LogLevel level) noexcept;
LogLevel log_level() noexcept;

}  // namespace abxbus

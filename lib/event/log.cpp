#include "event/log.hpp"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace abxbus {
namespace {

using Sink = std::function<void(LogLevel, std::string_view)>;

struct State {
  std::mutex mutex;
  std::shared_ptr<const Sink> sink;  ///< null: standard error
  /// Relaxed: a threshold orders nothing.
  std::atomic<LogLevel> level{LogLevel::warning};
};

/// Never destroyed: threads of the library may log while the program ends.
State& state() {
  static State& instance = *new State;
  return instance;
}

std::string_view level_name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "";
}

void write_to_stderr(LogLevel level, std::string_view text) {
  std::string line = "abxbus ";
  line.append(level_name(level)).append(": ").append(text).append("\n");
  // One call, so that lines of several threads do not mix.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_log_sink(std::function<void(LogLevel, std::string_view text)> sink) {
  std::shared_ptr<const Sink> next;
  if (sink) next = std::make_shared<const Sink>(std::move(sink));
  {
    const std::lock_guard lock(state().mutex);
    state().sink.swap(next);
  }
  // The former sink ends here, outside the lock: what it captured may be anything.
}

void set_log_level(LogLevel level) noexcept {
  state().level.store(level, std::memory_order_relaxed);
}

LogLevel log_level() noexcept {
  return state().level.load(std::memory_order_relaxed);
}

namespace detail {

bool log_enabled(LogLevel level) noexcept {
  return level >= log_level();
}

void log(LogLevel level, const std::string& text) noexcept {
  if (!log_enabled(level)) return;
  try {
    std::shared_ptr<const Sink> sink;
    {
      const std::lock_guard lock(state().mutex);
      sink = state().sink;
    }
    if (sink) {
      (*sink)(level, text);
    } else {
      write_to_stderr(level, text);
    }
  } catch (...) {
    // There is nobody to tell.
  }
}

}  // namespace detail
}  // namespace abxbus

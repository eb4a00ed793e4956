#pragma once

/// What tests share: gates instead of sleeps, a log that handlers may write to from any thread, a captured log sink.
/// No Catch2 here: handlers and threads record, the test thread asserts.

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace testing {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Generous limit for things that must happen: machines are shared and noisy.
inline constexpr auto patience = 20s;

/// A door that handlers wait at. Opens once and stays open. `wait` gives up after `patience` so that a failing test
/// ends; it returns whether the gate was opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait(Clock::duration limit = patience) {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    return changed_.wait_for(lock, limit, [&] { return open_; });
  }
  /// Blocks until that many callers have come to `wait`; false when they did not come in time.
  bool wait_for_arrivals(int count, Clock::duration limit = patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return arrived_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
};

/// Ordered notes from any thread.
class Recorder {
 public:
  void add(std::string note) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(note));
    changed_.notify_all();
  }
  std::vector<std::string> notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return notes_.size();
  }
  bool contains(std::string_view note) const {
    const std::lock_guard lock(mutex_);
    for (const auto& each : notes_)
      if (each == note) return true;
    return false;
  }
  /// Waits until `count` notes are there.
  bool wait_for_size(std::size_t count, Clock::duration limit = patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return notes_.size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> notes_;
};

/// Polls a condition that other threads bring about; for state without an event to wait on.
inline bool eventually(const std::function<bool()>& condition, Clock::duration limit = patience) {
  const auto end = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(200us);
  }
  return true;
}

/// Captures what the library logs while it lives.
class CapturedLog {
 public:
  explicit CapturedLog(abxbus::LogLevel level = abxbus::LogLevel::warning) : before_(abxbus::log_level()) {
    abxbus::set_log_level(level);
    abxbus::set_log_sink([state = state_](abxbus::LogLevel, std::string_view text) { state->add(std::string(text)); });
  }
  ~CapturedLog() {
    abxbus::set_log_sink({});
    abxbus::set_log_level(before_);
  }
  std::vector<std::string> lines() const { return state_->notes(); }
  /// How many lines contain the text.
  int count(std::string_view text) const {
    int found = 0;
    for (const auto& line : state_->notes())
      if (line.find(text) != std::string::npos) ++found;
    return found;
  }
  bool wait_for(std::string_view text, Clock::duration limit = patience) const {
    return eventually([&] { return count(text) > 0; }, limit);
  }

 private:
  std::shared_ptr<Recorder> state_ = std::make_shared<Recorder>();
  abxbus::LogLevel before_;
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The type name of an error, "" for none.
inline std::string error_name(const std::exception_ptr& error) {
  return error ? abxbus::error_type_name(error) : std::string();
}

/// Opens gates at the end of the scope, also when an assertion fails. Declare it after the bus whose handlers wait at
/// them, so that the bus's end finds no handler blocked.
template <class... Gates>
class OpenAtExit {
 public:
  explicit OpenAtExit(Gates&... gates) : open_([&gates...] { (gates.open(), ...); }) {}
  OpenAtExit(const OpenAtExit&) = delete;
  OpenAtExit& operator=(const OpenAtExit&) = delete;
  ~OpenAtExit() { open_(); }

 private:
  std::function<void()> open_;
};

/// Counts how many handlers are inside at the same time.
class Meeting {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    max_ = std::max(max_, ++inside_);
    changed_.notify_all();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
  }
  /// Enters, stays until `count` have been inside at once, leaves. With `patience` for what must overlap, with a short
  /// limit for what must not. False: the others did not come.
  bool meet(int count, Clock::duration limit = patience) {
    std::unique_lock lock(mutex_);
    max_ = std::max(max_, ++inside_);
    changed_.notify_all();
    const bool met = changed_.wait_for(lock, limit, [&] { return max_ >= count; });
    --inside_;
    return met;
  }
  int max() const {
    const std::lock_guard lock(mutex_);
    return max_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  int max_ = 0;
};

/// The message of the `Error` that the call throws; "no error" or "another error: ..." when it does not.
template <class Error, class F>
std::string message_of(F&& call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  } catch (...) {
    return "another error";
  }
  return "no error";
}

}  // namespace testing

#pragma once

/// What the scheduling tests share beside testing.hpp: calls that block on a thread of their own, waiting for a
/// stop, short forms for what tests look at. No Catch2 here.

#include "testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace testing {

/// A blocking call on a thread of its own; keeps how it ended. Its destructor joins: declare it before the guard that
/// opens the gates.
class Caller {
 public:
  template <class F>
  requires std::is_invocable_v<F&>
  explicit Caller(F call) : thread_([this, call = std::move(call)]() mutable { run(call); }) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  bool finished() const { return finished_.load(); }
  /// Waits until the call has ended; false when it did not in time.
  bool finishes(Clock::duration limit = patience) {
    return eventually([this] { return finished(); }, limit);
  }
  /// True when the call is still blocked after that time.
  bool still_blocked_after(Clock::duration time) {
    std::this_thread::sleep_for(time);
    return !finished();
  }
  /// Class name of the exception that ended the call, "" for none. Only after it has ended.
  std::string error() const { return error_name(error_); }
  std::string message() const { return error_ ? abxbus::error_message(error_) : std::string(); }

 private:
  template <class F>
  void run(F& call) {
    try {
      call();
    } catch (...) {
      error_ = std::current_exception();
    }
    finished_.store(true);
  }

  std::exception_ptr error_;
  std::atomic<bool> finished_{false};
  std::jthread thread_;
};

/// Blocks until the token is stopped; false when it was not in time.
inline bool wait_for_stop(const std::stop_token& token, Clock::duration limit = patience) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, token, limit, [] { return false; });
  return token.stop_requested();
}

/// Statuses of an event's results in the order of `event_results()`.
inline std::vector<std::string> statuses(const abxbus::BaseEvent& event) {
  std::vector<std::string> names;
  for (const abxbus::EventResult& result : event.event_results()) {
    switch (result.status()) {
      case abxbus::EventResultStatus::pending:
        names.emplace_back("pending");
        break;
      case abxbus::EventResultStatus::started:
        names.emplace_back("started");
        break;
      case abxbus::EventResultStatus::completed:
        names.emplace_back("completed");
        break;
      case abxbus::EventResultStatus::error:
        names.emplace_back("error");
        break;
    }
  }
  return names;
}

inline bool completed(const abxbus::BaseEvent& event) {
  return event.event_status() == abxbus::EventStatus::completed;
}

/// Class name and message of what a call throws: `Name: message`; "" when it returns.
template <class F>
std::string thrown_by(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    return abxbus::error_type_name(error) + ": " + abxbus::error_message(error);
  }
  return {};
}

/// How long a call takes, in seconds.
template <class F>
double duration_of(F&& call) {
  const auto start = Clock::now();
  std::forward<F>(call)();
  return seconds_since(start);
}

}  // namespace testing

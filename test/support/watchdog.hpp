#pragma once

/// What stress tests share: how much to do here, and an end for tests that hang. No Catch2 here.

#include "stress.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// How much slower than `full` this run is asked to be. ABXBUS_STRESS_SCALE is a factor (0.1: a tenth);
/// ABXBUS_STRESS_PERCENT (stress.hpp) holds as well; without either, a sanitizer's build does a fiftieth.
inline double stress_scale() {
  double scale = 1;
  const char* const text = std::getenv("ABXBUS_STRESS_SCALE");
  if (text != nullptr) {
    scale = std::strtod(text, nullptr);
  } else if (sanitized && std::getenv("ABXBUS_STRESS_PERCENT") == nullptr) {
    scale = 0.02;
  }
  return scale * static_cast<double>(abxbus::test::stress_count(100000)) / 100000;
}

/// The part of `full` that this run does, never less than `least`.
inline int scaled(int full, int least = 1) {
  return std::max(least, static_cast<int>(static_cast<double>(full) * stress_scale()));
}

/// Ends the program with a message when the scope takes longer than the limit, or when `alive` was not called for
/// that long: a hang is reported where it happens, with a core to look into.
class Watchdog {
 public:
  using Duration = std::chrono::steady_clock::duration;
  explicit Watchdog(std::string what, Duration limit = std::chrono::minutes(5))
      : what_(std::move(what)), limit_(limit), thread_([this] { watch(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  /// Starts the limit again.
  void alive() {
    const std::lock_guard lock(mutex_);
    ++signs_;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    auto end = std::chrono::steady_clock::now() + limit_;
    std::size_t seen = signs_;
    while (!changed_.wait_until(lock, end, [this] { return done_; })) {
      if (seen == signs_) {
        std::fprintf(stderr, "watchdog: no end in sight: %s\n", what_.c_str());
        std::fflush(stderr);
        std::abort();
      }
      seen = signs_;
      end = std::chrono::steady_clock::now() + limit_;
    }
  }

  std::string what_;
  Duration limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::size_t signs_ = 0;
  std::thread thread_;
};

}  // namespace testing

#pragma once

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace abxbus::perf {

/// Nanoseconds of the steady clock.
inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The cheapest reading of time there is: the processor's own counter, else the steady clock.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(now_ns());
#endif
}

/// Tells the processor that this thread only waits.
inline void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Runs from its construction on.
class Stopwatch {
 public:
  std::int64_t elapsed_ns() const noexcept { return now_ns() - start_; }

 private:
  std::int64_t start_ = now_ns();
};

/// Converts intervals of `ticks()`, judged by the steady clock over its own lifetime.
class TickScale {
 public:
  double ns_per_tick() const noexcept {
    const auto passed = static_cast<double>(ticks() - start_ticks_);
    return passed > 0 ? static_cast<double>(now_ns() - start_ns_) / passed : 1;
  }

 private:
  std::uint64_t start_ticks_ = ticks();
  std::int64_t start_ns_ = now_ns();
};

}  // namespace abxbus::perf

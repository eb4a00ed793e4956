#pragma once

#include "dispatch/timer_heap.hpp"

#include <atomic>
#include <cstdint>

/// The thread that watches deadlines.
///
/// Purpose: no timer per event. Each executing handler publishes its deadline in its ExecSlot; this one thread sleeps
/// until the earliest. A start with a deadline later than the watchdog's next look costs one load.
///
/// State: `next_look` (event clock, nanoseconds). Loop: next_look = MAX, scan slots and timers, next_look = earliest,
/// sleep until then or until kicked. Executor: publish RUNNING (seq_cst), read next_look; own deadline earlier -> kick.
/// Dekker (ExecSlot::word, next_look): if the scan missed the slot, the executor's read sees MAX or the new value.
/// A slot found idle whose generation moved since the last look keeps next_look within the last interval, so that a
/// stream of short deadlines costs one wake an interval, not a futex call an event.
///
/// Never runs user code and never waits for a lock that user code could hold: what it finds is submitted to the pool.
namespace abxbus::detail {

class Watchdog {
 public:
  /// Executor: a handler with this deadline has started.
  void started(std::int64_t earliest_deadline) noexcept {
    if (earliest_deadline < next_look_.load(std::memory_order_seq_cst)) [[unlikely]]
      kick();
  }
  TimerHeap::Key arm(std::int64_t due_steady_ns, TimerFunction function, void* context);
  bool disarm(const TimerHeap::Key& key) { return timers_.remove(key); }
  /// Makes the thread look at once; starts it on first use.
  void kick() noexcept;

 private:
  void ensure_thread();
  void loop() noexcept;
  std::int64_t scan(std::int64_t now) noexcept;

  /// MAX while scanning and before the first look.
  alignas(64) std::atomic<std::int64_t> next_look_{INT64_MAX};
  alignas(64) std::atomic<std::uint32_t> kicked_{0};
  std::atomic<bool> running_{false};
  TimerHeap timers_;
  std::int64_t last_interval_ = INT64_MAX;
};

Watchdog& watchdog() noexcept;

/// Defined by the run layer: a running slot's deadline has passed / its slow threshold has passed.
void deadline_passed(struct ExecSlot& slot, std::uint64_t word) noexcept;
void slow_threshold_passed(struct ExecSlot& slot, std::uint64_t word, bool event) noexcept;

}  // namespace abxbus::detail

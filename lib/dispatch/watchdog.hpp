#pragma once

#include "dispatch/timer_heap.hpp"

#include <atomic>
#include <cstdint>

/// The thread that watches deadlines.
///
/// Purpose: no timer per event. Each executing handler publishes its deadline in its ExecSlot; this one thread sleeps
/// until the earliest. A start with a deadline later than the watchdog's next look costs one load.
///
/// State: `next_look` (event clock, nanoseconds): a scan begins then or earlier. Loop: next_look = the latest time of
/// the scan after this one (MAX when the last one saw nothing), scan slots and timers, lower next_look to the earliest
/// deadline seen, sleep until then or until kicked. Executor: publish RUNNING (seq_cst), read next_look; own deadline
/// earlier -> kick.
/// Dekker (ExecSlot::word, next_look): a slot that the scan missed was published after next_look was written, so its
/// executor reads that value or a later one, and the deadline it does not kick for is not before the next scan.
/// The interval follows the shortest deadlines seen, so that a stream of them costs one wake an interval and not a
/// futex call an event, and grows back slowly when they have stopped.
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
  struct Seen {
    std::int64_t earliest = INT64_MAX;  ///< what is due first in the slots that run
    bool moved = false;                 ///< some slot that is idle has run since the last look
  };
  Seen scan(std::int64_t now) noexcept;
  void sleep_until(std::int64_t due) noexcept;
  std::int64_t plan(std::int64_t now, std::int64_t promise, const Seen& seen) noexcept;

  /// MAX while nothing runs.
  alignas(64) std::atomic<std::int64_t> next_look_{INT64_MAX};
  alignas(64) std::atomic<std::uint32_t> kicked_{0};
  std::atomic<bool> running_{false};
  TimerHeap timers_;
  std::int64_t interval_ = 200'000;  ///< between two looks while handlers start and end; adapts to their deadlines
  int looks_ = 0;                    ///< at that interval without need
  bool quiet_ = true;                ///< the last scan saw nothing run
};

Watchdog& watchdog() noexcept;

/// Defined by the run layer: a running slot's deadline has passed / its slow threshold has passed.
void deadline_passed(struct ExecSlot& slot, std::uint64_t word) noexcept;
void slow_threshold_passed(struct ExecSlot& slot, std::uint64_t word, bool event) noexcept;

}  // namespace abxbus::detail

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>

/// The time source of timestamps, ids and deadlines: nanoseconds since the Unix epoch.
///
/// Time is a function of a counter that all cores share: the invariant time stamp counter, or CLOCK_MONOTONIC where
/// there is none. The function is a chain of straight pieces that meet at their ends. Each piece is fixed before
/// anybody uses it and is never changed; a thread works with its own copy of one piece and comes back for the next one
/// when its counter reading leaves the piece (after about a second). So every counter value stands for exactly one time
/// in the whole process, whoever asks and whenever the correction becomes visible to him, and the pieces only rise.
///
///   | reading of the counter      | what happens                                                       |
///   |-----------------------------|--------------------------------------------------------------------|
///   | inside the thread's piece   | a multiplication; nothing shared is touched but the read-only era  |
///   | outside, next piece known   | copy it under a mutex                                              |
///   | outside, no piece known     | compare with the system clocks (about 2 us), make the next piece   |
///
/// The first two milliseconds read the system clock instead and calibrate on the way. A piece has the measured rate of
/// the counter, bent by at most one in a thousand towards the system's wall clock. So a step of the wall clock never
/// makes a value smaller, and is approached slowly. Where the counter jumped against the monotonic clock (the machine
/// slept, or was moved), the next piece begins above the end of the last one and follows the monotonic clock.
///
/// Guarantees (D-TIM-7): values on one thread are strictly increasing. Along happens-before they never decrease,
/// because `now_ns` reads the counter only after everything it follows; who used `now_ns_chained` hands its value to
/// `note_time` of whoever continues.
///
/// Measured (two cores of a virtual machine, g++ 12 -O3, best of 25; a bare counter reading is 7.3 ns there):
/// `now_ns_chained` 9.3, `now_ns` 15.7; right after a locked operation, that operation of 4.4 included, 19.7 and 20.1:
/// the order costs nothing there. `clock_gettime` is 15.9 on that machine; it is 49 against 28 for the bare counter on
/// the one the budgets were made on.
///
/// Threads: every function from any thread.
///
/// Memory ordering: a piece reaches a thread under the mutex. The era changes only when a test installs or removes a
/// ManualClock; relaxed, since whoever must see the change is ordered behind it by other means.
namespace abxbus::detail {

/// What a thread knows of the time. Constant-initialised and trivially destroyed: access needs no guard, also while
/// other thread-local objects are destroyed.
struct ThreadClock {
  std::uint64_t start = 0;  ///< first counter value of the piece
  std::uint64_t span = 0;   ///< length of the piece in counter steps; 0 = no piece
  std::uint64_t rate = 0;   ///< nanoseconds per counter step, in units of 2^-rate_shift
  std::int64_t origin = 0;  ///< time at `start`
  std::int64_t last = std::numeric_limits<std::int64_t>::min();  ///< greatest time this thread has seen
  std::uint32_t era = 0;                                         ///< era in which the members above hold
};

inline constinit thread_local ThreadClock thread_clock{};

/// 1 or greater; 0 is a thread that has not read the clock yet.
inline constinit std::atomic<std::uint32_t> clock_era{1};
/// Whether the counter is the time stamp counter. Written once before the first piece is handed out.
inline constinit std::atomic<bool> clock_uses_tsc{false};

inline constexpr int rate_shift = 56;

std::uint64_t monotonic_ticks() noexcept;
std::int64_t now_ns_slow(ThreadClock& clock) noexcept;
void note_time_slow(ThreadClock& clock, std::int64_t time) noexcept;

inline std::uint64_t read_ticks() noexcept {
#if defined(__x86_64__)
  if (clock_uses_tsc.load(std::memory_order_relaxed)) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return monotonic_ticks();
}

/// `ticks` counter steps in nanoseconds, cut off; monotonic in `ticks`.
inline std::int64_t ticks_to_ns(std::uint64_t ticks, std::uint64_t rate) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>((static_cast<Wide>(ticks) * rate) >> rate_shift));
}

/// The time; for readings on a thread whose previous step was already in the library: the processor may take it up to
/// some hundred nanoseconds before an earlier load has brought its value.
inline std::int64_t now_ns_chained() noexcept {
  ThreadClock& clock = thread_clock;
  const std::uint64_t passed = read_ticks() - clock.start;
  if (passed >= clock.span || clock.era != clock_era.load(std::memory_order_relaxed)) [[unlikely]]
    return now_ns_slow(clock);
  std::int64_t now = clock.origin + ticks_to_ns(passed, clock.rate);
  if (now <= clock.last) [[unlikely]]
    now = clock.last + 1;
  clock.last = now;
  return now;
}

/// The time, later than everything that happened before. Never throws.
inline std::int64_t now_ns() noexcept {
#if defined(__x86_64__)
  // Waits until earlier loads are done: a value that another thread published before its reading is then older.
  __builtin_ia32_lfence();
#endif
  return now_ns_chained();
}

/// The caller has seen this time: what it reads from now on is greater. For a thread that goes on with an event stamped
/// by another one, and to reserve the nanoseconds up to `time`.
inline void note_time(std::int64_t time) noexcept {
  ThreadClock& clock = thread_clock;
  if (clock.era != clock_era.load(std::memory_order_relaxed)) [[unlikely]]
    return note_time_slow(clock, time);
  if (time > clock.last) clock.last = time;
}

/// Prepares the next piece unless that is done already, so that no reader has to. For a thread that looks about once in
/// half a second anyway.
void clock_correct() noexcept;

/// Whether a ManualClock stands still in place of the clock: a wait must not translate its deadline into real time
/// then, but wait until a ClockMovedHook is called.
bool clock_is_manual() noexcept;

/// Calls a function whenever a ManualClock is installed, moved or removed, on the thread that does it. The function may
/// read the clock and wake waiters; it must not make or end hooks or move the clock. After the destructor it is not
/// running.
class ClockMovedHook {
 public:
  explicit ClockMovedHook(std::function<void()> moved);
  ~ClockMovedHook();
  ClockMovedHook(const ClockMovedHook&) = delete;
  ClockMovedHook& operator=(const ClockMovedHook&) = delete;

 private:
  std::list<std::function<void()>>::iterator place_;
};

/// For tests: while it lives, time in the whole process is what it says, and moves only when told to. Readings on one
/// thread still increase, by a nanosecond each. One at a time. Other threads use it from the first reading that is
/// ordered behind the constructor.
class ManualClock {
 public:
  /// Starts at the given time, or at the present one.
  ManualClock();
  explicit ManualClock(std::int64_t start_ns);
  ~ManualClock();
  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;

  std::int64_t value() const noexcept;
  /// Moves to a time, never backwards.
  void set(std::int64_t time_ns);
  void advance(std::int64_t by_ns);
};

}  // namespace abxbus::detail

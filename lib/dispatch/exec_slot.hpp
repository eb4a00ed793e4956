#pragma once

#include "dispatch/job.hpp"
#include "event/thread_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Where a handler executes, seen from outside.
///
/// Purpose: a running handler can be ended by five parties (its own return, the watchdog, a cut of its run, a lost
/// `first` race, destroy). The word of the slot arbitrates: each tries one compare-exchange out of RUNNING, one wins
/// and settles the result. A slot lies on lines that only its executor touches normally, and is never unmapped, so
/// anybody may look at any time without holding a reference to anything.
///
///   IDLE -> RUNNING          executor, after writing the fields (seq_cst exchange)
///   RUNNING -> IDLE          executor, user code is over (acq_rel): it settles
///   RUNNING -> RUNNING|PIN   watchdog, to read names for a slow warning; the executor waits until it is gone
///   RUNNING -> TAKEN         anybody else, with the generation it read before the fields (acq_rel): it settles
///   TAKEN -> TAKEN_SETTLED   the taker, result terminal and its references added (release + wake)
///   TAKEN_SETTLED -> IDLE    executor, whenever it comes back
///
/// Memory ordering: fields are relaxed atomics written before the exchange to RUNNING; a taker reads the word
/// (acquire), the fields, and its compare-exchange on the same generation proves that they belonged together.
/// Dekker pairs: (word, Leg::cut) a starter publishes RUNNING and then reads the cut, a cutter writes the cut and then
/// looks at the words; (word, Watchdog::next_look) the starter then reads next_look, the watchdog opens next_look
/// before it scans. All four accesses are seq_cst.
/// Invalid: leaving a slot that is RUNNING; taking with a generation read after the fields.
namespace abxbus::detail {

struct BusCore;
struct Leg;
struct Run;
struct ExecExtra;

enum SlotState : std::uint64_t { slot_idle = 0, slot_running = 1, slot_taken = 2, slot_settled = 3 };
inline constexpr std::uint64_t slot_state_mask = 3;
inline constexpr std::uint64_t slot_pin = 4;
inline constexpr std::uint64_t slot_generation = 8;

struct alignas(128) ExecSlot {
  std::atomic<std::uint64_t> word{slot_idle};
  std::atomic<Run*> run{nullptr};
  std::atomic<Leg*> leg{nullptr};
  std::atomic<BusCore*> bus{nullptr};
  std::atomic<std::uint32_t> index{0};
  /// The executing thread is one of a pool: while it stays in a handler that was taken from it, it counts as waiting
  /// there (`counted_out`: written by the taker before TAKEN_SETTLED, read by the executor after it).
  std::atomic<bool> on_pool_thread{false};
  bool counted_out = false;
  /// What executes is a coroutine: it keeps the slot while suspended.
  std::atomic<bool> coroutine{false};
  /// Whether `deadline` is the event's (else the handler's own).
  std::atomic<bool> event_deadline{false};
  /// Nanoseconds of the event clock; no_deadline: none.
  std::atomic<std::int64_t> deadline{INT64_MAX};
  std::atomic<std::int64_t> slow_at{INT64_MAX};
  std::atomic<std::int64_t> event_slow_at{INT64_MAX};
  /// Stop source and children of the handler run, made on first need. Seq_cst store; Dekker with HandlerRun::status:
  /// the maker stores this, then reads the status; the settler stores the status, then reads this.
  std::atomic<ExecExtra*> extra{nullptr};
  /// For sleeping on `word` (futexes are 32 bits wide); changed by the taker after TAKEN_SETTLED.
  std::atomic<std::uint32_t> settled_signal{0};
  /// Share of a parallel run the executor works on; read by a taker (see fan_out.hpp).
  std::atomic<struct Share*> share{nullptr};
  /// The taker's pin of the bus's registry for the abandoned code; written before TAKEN_SETTLED, read after it.
  std::uint32_t pin = 0;
  /// The settle after a deadline, as a job of the pool.
  struct SettleJob : Job {
    ExecSlot* slot = nullptr;
  } settle;
  ExecSlot* next_free = nullptr;
};

/// All slots that were ever used. Blocks are never freed.
class SlotPool {
 public:
  static constexpr std::size_t block_size = 64;
  static constexpr std::size_t max_blocks = 1 << 15;

  ExecSlot* take();
  void give_back(ExecSlot* slot) noexcept;
  /// In a forked child, which has one thread: the threads that execute in these slots do not exist there, so nobody may
  /// find their deadlines passed and go on with their runs, and one of them may have held the lock. The blocks stay
  /// where they are.
  void forget_all() noexcept;
  /// Calls `f(ExecSlot&)` for each slot ever used.
  template <class F>
  void for_each(F&& f) {
    const std::size_t used = used_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) f(blocks_[i / block_size].load(std::memory_order_acquire)[i % block_size]);
  }

 private:
  std::atomic<ExecSlot*> blocks_[max_blocks] = {};
  /// Published with release after the block it counts.
  std::atomic<std::size_t> used_{0};
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  ExecSlot* free_ = nullptr;
};

SlotPool& slot_pool() noexcept;

/// This thread's slot for the given nesting depth. Slots go back to the pool when the thread ends.
ExecSlot* thread_slot(std::uint32_t depth);

/// Tries to take a running slot. `expected` is the word as read before the fields.
bool try_take(ExecSlot& slot, std::uint64_t expected) noexcept;
/// The taker is done with run, leg and result: lets the executor leave.
void mark_settled(ExecSlot& slot) noexcept;
/// Executor: user code is over. True: it settles. False: it was taken; waits until the taker is done.
bool leave_slot(ExecSlot& slot, std::uint64_t running) noexcept;

}  // namespace abxbus::detail

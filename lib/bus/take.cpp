#include "bus/take.hpp"

#include "bus/cancel.hpp"
#include "bus/fan_out.hpp"
#include "bus/run.hpp"
#include "bus/settle.hpp"
#include "event/futex.hpp"
#include "event/hooks.hpp"
#include "event/log.hpp"

/// Taking running handlers from their executors: cuts, and what the executor is left with.
namespace abxbus::detail {

void count_abandoned(int change) noexcept {
  static std::atomic<int> abandoned{0};
  static std::atomic<bool> warned{false};
  const int now = abandoned.fetch_add(change, std::memory_order_relaxed) + change;
  if (now > 64 && !warned.exchange(true, std::memory_order_relaxed))
    log(LogLevel::warning, "abxbus: more than 64 handlers that were cut short are still executing");
}

namespace {

/// Calls the stop callbacks of a handler run that was cut short, in its context: what they do counts as done by a
/// handler whose result is terminal, so their emits are dropped and their waits throw (T-CAN-5, T-LATE-2). Gives up the
/// reference on `extra`. The caller holds run and record.
void request_stop(ExecExtra* extra, Run* run, HandlerRun* result) noexcept {
  // Never RUNNING, so the frame is stale; not in the pool, so nobody takes it.
  ExecSlot slot;
  slot.extra.store(extra, std::memory_order_relaxed);
  ExecFrame frame;
  frame.run = run;
  frame.record = run->record;
  frame.bus = run->bus;
  frame.result = result;
  frame.slot = &slot;
  frame.running = slot_running;
  frame.is_notice = true;
  frame.outer = current_frame;
  frame.thread_depth = frame_depth(current_frame);
  current_frame = &frame;
  extra->stop.request_stop();
  current_frame = frame.outer;
  release_extra(extra);
}

struct StopJob : Job {
  ExecExtra* extra = nullptr;
  Run* run_of = nullptr;
  HandlerRun* result = nullptr;
  RecordPtr keep;
};

void run_stop_job(Job* job) noexcept {
  auto* const stop = static_cast<StopJob*>(job);
  request_stop(stop->extra, stop->run_of, stop->result);
  release_run(stop->run_of);
  delete stop;
}

}  // namespace

std::uint32_t uncounted_of(const ExecSlot& slot) noexcept {
  const Share* const share = slot.share.load(std::memory_order_relaxed);
  return share == nullptr ? 0 : share->settled.load(std::memory_order_relaxed);
}

void count_out(ExecSlot& slot, WorkerPool* pool) noexcept {
  slot.counted_out = slot.on_pool_thread.load(std::memory_order_relaxed);
  if (slot.counted_out) pool->enter_wait();
}

void release_executor(ExecSlot& slot, Run* run, std::uint32_t index, bool may_call_out) noexcept {
  BusCore* const bus = run->bus;
  retain_run(run);
  retain(run->record);
  bus->abandoned.fetch_add(1, std::memory_order_seq_cst);
  count_abandoned(1);
  slot.pin = bus->reclaimer.pin_all();
  ExecExtra* const extra = slot.extra.load(std::memory_order_seq_cst);
  if (extra != nullptr) extra->refs.fetch_add(1, std::memory_order_relaxed);
  WorkerPool* const pool = bus->pool;
  mark_settled(slot);
  if (extra == nullptr) return;
  HandlerRun* const result = &run->results[index];
  if (may_call_out) {
    request_stop(extra, run, result);
    return;
  }
  auto* const job = new StopJob;
  job->run = &run_stop_job;
  job->extra = extra;
  job->run_of = run;
  job->result = result;
  retain_run(run);
  job->keep = RecordPtr::share(run->record);
  pool->submit(job);
}

void continue_after_taking(Run* run, std::uint32_t uncounted) noexcept {
  if (run->parallel) {
    count_settled(run, uncounted + 1);
    return;
  }
  advance(run, false);
}

namespace {

/// Whether the handler that runs in the slot is on the calling chain: below on this thread's stack, or one whose now()
/// started a run on the chain (which another thread or a suspended coroutine may hold). `word`: the slot's.
bool on_chain(const ExecFrame* frame, const ExecSlot& slot, std::uint64_t word) noexcept {
  for (; frame != nullptr; frame = frame->outer) {
    if (frame->slot == &slot) return true;
    for (const Run* run = frame->run; run != nullptr; run = run->caller)
      if (run->caller_slot == &slot && run->caller_running == (word & ~slot_pin)) return true;
  }
  return false;
}

/// Takes every running slot that is not on the calling chain and of which `wanted` says yes; the word that was read
/// before decides that what `wanted` saw is what is taken.
template <class F>
void take_slots(Cut reason, const ExecFrame* spare, F&& wanted) noexcept {
  slot_pool().for_each([&](ExecSlot& slot) {
    const std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    if ((word & slot_state_mask) != slot_running || !wanted(slot)) return;
    if (on_chain(spare, slot, word)) return;
    if (!try_take(slot, word)) return;
    ABXBUS_HOOK(taken);
    Run* const run = slot.run.load(std::memory_order_relaxed);
    const std::uint32_t index = slot.index.load(std::memory_order_relaxed);
    // As in settle_after_deadline: the bus has to last until what the run held has been passed on.
    BusCore* const bus = run->bus;
    retain_core(bus);
    settle_cut(run, index, reason, true);
    retain_run(run);
    const std::uint32_t uncounted = uncounted_of(slot);
    // Stopped before the run goes on (T-CAN-4), on this thread if it is one of a pool and the user cannot hold a lock.
    release_executor(slot, run, index, reason != Cut::destroy && WorkerPool::of_this_thread() != nullptr);
    // The children of a cancelled child are its canceller's, which does not recurse; those of a destroyed bus's
    // handlers go on (T-CAN-35).
    if (reason != Cut::parent && reason != Cut::destroy) cancel_children(run, index, false, reason);
    if (run->parallel) participate(run);  // cancels what has not started: its participants may all sit in handlers
    continue_after_taking(run, uncounted);
    release_run(run);
    release_core(bus);
  });
}

}  // namespace

void take_running(Leg* leg, Cut reason, const ExecFrame* spare) noexcept {
  take_slots(reason, spare, [leg](const ExecSlot& slot) { return slot.leg.load(std::memory_order_relaxed) == leg; });
}

void take_running_on(const BusCore* bus, Cut reason, const ExecFrame* spare) noexcept {
  take_slots(reason, spare, [bus](const ExecSlot& slot) { return slot.bus.load(std::memory_order_relaxed) == bus; });
}

void wait_for_takers(const BusCore* bus) noexcept {
  slot_pool().for_each([bus](ExecSlot& slot) {
    for (;;) {
      const std::uint32_t signal = slot.settled_signal.load(std::memory_order_acquire);
      const std::uint64_t word =
          slot.word.load(std::memory_order_acquire);  // pairs with mark_settled, behind the count
      // A taken slot keeps its fields until it is settled.
      if ((word & slot_state_mask) != slot_taken || slot.bus.load(std::memory_order_relaxed) != bus) return;
      futex_wait(slot.settled_signal, signal, no_deadline);
    }
  });
}

}  // namespace abxbus::detail

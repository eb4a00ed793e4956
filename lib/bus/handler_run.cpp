#include "bus/completion.hpp"
#include "bus/fan_out.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "bus/settle.hpp"
#include "bus/take.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/hooks.hpp"

#include <abxbus/error.hpp>

#include <algorithm>
#include <new>

/// One handler run: start, call, end (protocol in dispatch/exec_slot.hpp).
namespace abxbus::detail {

namespace {

/// Publishes the slot as RUNNING and tells the watchdog. False: the run has been cut meanwhile and this handler was
/// taken back before its code began.
enum class Start : std::uint8_t { running, cut_back, lost };

Start publish(ExecSlot& slot, Run* run, std::uint32_t index, std::int64_t deadline, bool event_decides,
              std::int64_t slow_at, Share* share, bool coroutine, std::uint64_t& running) noexcept {
  slot.run.store(run, std::memory_order_relaxed);
  slot.leg.store(run->leg, std::memory_order_relaxed);
  slot.bus.store(run->bus, std::memory_order_relaxed);
  slot.index.store(index, std::memory_order_relaxed);
  slot.coroutine.store(coroutine, std::memory_order_relaxed);
  slot.on_pool_thread.store(!coroutine && WorkerPool::of_this_thread() == run->bus->pool, std::memory_order_relaxed);
  slot.event_deadline.store(event_decides, std::memory_order_relaxed);
  slot.deadline.store(deadline, std::memory_order_relaxed);
  slot.slow_at.store(slow_at, std::memory_order_relaxed);
  slot.event_slow_at.store(run->event_slow_at, std::memory_order_relaxed);
  slot.share.store(share, std::memory_order_relaxed);
  running =
      ((slot.word.load(std::memory_order_relaxed) & ~(slot_state_mask | slot_pin)) + slot_generation) | slot_running;
  slot.word.exchange(running, std::memory_order_seq_cst);
  ABXBUS_HOOK(handler_running);
  if (cut_of(run) != Cut::none) {
    return leave_slot(slot, running) ? Start::cut_back : Start::lost;
  }
  watchdog().started(std::min({deadline, slow_at, run->event_slow_at}));
  // The exchange above is also the fence behind the result that this thread settled before (completion.hpp).
  if (run->count > 1) tell_result_waiters(run->record);
  return Start::running;
}

/// What must happen by when.
struct Deadlines {
  std::int64_t deadline = INT64_MAX;
  std::int64_t slow_at = INT64_MAX;
  bool event_decides = true;
};

Deadlines deadlines_of(const Run* run, HandlerRun& result, std::int64_t now) noexcept {
  const HandlerLimits limits = limits_of(run, result.entry);
  Deadlines when;
  when.deadline = run->event_deadline;
  if (limits.own_ns != 0 && now + limits.own_ns < run->event_deadline) {  // a tie is the event's (T-TMO-22)
    when.deadline = now + limits.own_ns;
    when.event_decides = false;
  }
  const std::int64_t effective = limits.effective();
  if (limits.slow_ns != 0 && (effective == 0 || effective > limits.slow_ns)) when.slow_at = now + limits.slow_ns;
  result.timeout_us.store(
      effective >= INT64_C(4'000'000'000'000) ? UINT32_MAX : static_cast<std::uint32_t>(effective / 1'000),
      std::memory_order_relaxed);
  return when;
}

void finish_extra(ExecSlot& slot) noexcept {
  // Only the executor makes and takes it, so the look is exact and spares a locked operation.
  if (slot.extra.load(std::memory_order_relaxed) == nullptr) return;
  if (ExecExtra* extra = slot.extra.exchange(nullptr, std::memory_order_acq_rel)) release_extra(extra);
}

/// The executor comes back from a handler that was cut short: only its own references are left to give up.
void leave_abandoned(Run* run, Reclaimer::Pin pin) noexcept {
  BusCore* const bus = run->bus;
  Record* const record = run->record;
  bus->reclaimer.unpin(pin);
  release_run(run);
  if (bus->abandoned.fetch_sub(1, std::memory_order_seq_cst) == 1 || bus->owner_gone.load(std::memory_order_seq_cst)) {
    bus->abandoned_signal.fetch_add(1, std::memory_order_release);
    futex_wake(bus->abandoned_signal, INT32_MAX);
  }
  count_abandoned(-1);
  release_record(record);
}

/// The same for a handler that ran on this thread's own slot.
void leave_taken(ExecSlot& slot, Run* run) noexcept {
  if (std::exchange(slot.counted_out, false)) run->bus->pool->leave_wait();
  leave_abandoned(run, slot.pin);
}

}  // namespace

void release_extra(ExecExtra* extra) noexcept {
  if (extra->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete extra;
}

std::stop_token ExecFrame::stop_token() {
  ExecExtra* extra = slot->extra.load(std::memory_order_acquire);
  if (extra == nullptr) {
    auto* const fresh = new ExecExtra;
    if (slot->extra.compare_exchange_strong(extra, fresh, std::memory_order_seq_cst)) {
      extra = fresh;
      // Dekker (status, extra): the settler stores the status, then reads `extra`. Whoever comes second stops it.
      if (result->status.load(std::memory_order_seq_cst) >= RunStatus::completed) extra->stop.request_stop();
    } else {
      delete fresh;
    }
  }
  return extra->stop.get_token();
}

std::stop_token current_stop_token() {
  return current_frame->stop_token();
}

Step execute(Run* run, std::uint32_t index, Share* share) noexcept {
  HandlerRun& result = run->results[index];
  hold_entry(run, result);
  // The reading that ended the last handler (or started the run) starts this one.
  const std::int64_t now = share != nullptr ? share->next_start() : run->finished_at + (index != 0 ? 1 : 0);
  const Deadlines when = deadlines_of(run, result, now);
  result.started_at.store(now, std::memory_order_relaxed);
  result.status.store(RunStatus::started, std::memory_order_release);

  ExecFrame* const outer = current_frame;
  ExecSlot* const slot = thread_slot(frame_depth(outer));
  ExecFrame frame;
  frame.run = run;
  frame.record = run->record;
  frame.bus = run->bus;
  frame.result = &result;
  frame.slot = slot;
  frame.outer = outer;
  frame.thread_depth = frame_depth(outer) + 1;
  switch (publish(*slot, run, index, when.deadline, when.event_decides, when.slow_at, share, false, frame.running)) {
    case Start::running:
      break;
    case Start::cut_back:
      settle_cut(run, index, run->leg->cut.load(std::memory_order_acquire), true);
      return Step::settled;
    case Start::lost:
      leave_taken(*slot, run);
      return Step::lost;
  }

  Invocation call(run->record);
  std::exception_ptr error;
  current_frame = &frame;
  try {
    result.entry->callable(call);
  } catch (...) {
    error = std::current_exception();
  }
  current_frame = outer;
  ABXBUS_HOOK(handler_returned);

  if (!leave_slot(*slot, frame.running)) {
    finish_extra(*slot);
    if (call.task) call.task.destroy();
    call.result.reset();
    error = nullptr;
    leave_taken(*slot, run);
    return Step::lost;
  }
  if (call.task) return start_coroutine(run, index, call.task, slot, when.deadline, when.event_decides, when.slow_at);
  finish_extra(*slot);
  settle_outcome(run, index, std::move(call.result), std::move(error), share);
  return Step::settled;
}

// -- coroutine handlers
// -------------------------------------------------------------------------------------------------

namespace {

/// A coroutine handler: its frame and slot live as long as the coroutine.
///
/// state: STARTED -> LEFT (the starter returned to the pool: the coroutine is suspended) or COMPLETED (it ended on the
/// starter's stack). Both sides exchange (acq_rel) on the one word, so exactly one goes on with the run.
struct CoroutineRun : ExecFrame {
  static constexpr std::uint32_t started = 0, left = 1, completed = 2;
  std::atomic<std::uint32_t> state{started};
  std::uint32_t index = 0;
  std::coroutine_handle<RootTask::promise_type> handle;
};

/// The coroutine is over and the slot is ours or lost: settle and tear down. True: settled.
bool end_coroutine(CoroutineRun* coroutine) noexcept {
  Run* const run = coroutine->run;
  const std::uint32_t index = coroutine->index;
  Value value = std::move(coroutine->handle.promise().outcome);
  std::exception_ptr error = std::move(coroutine->handle.promise().error);
  ExecSlot* const slot = coroutine->slot;
  const bool won = leave_slot(*slot, coroutine->running);
  const Reclaimer::Pin pin = slot->pin;
  coroutine->handle.destroy();
  finish_extra(*slot);
  slot_pool().give_back(slot);
  coroutine->~CoroutineRun();
  deallocate(coroutine);
  if (!won) {
    value.reset();
    error = nullptr;
    leave_abandoned(run, pin);
    return false;
  }
  settle_outcome(run, index, std::move(value), std::move(error), nullptr);
  return true;
}

}  // namespace

Step start_coroutine(Run* run, std::uint32_t index, std::coroutine_handle<RootTask::promise_type> handle,
                     ExecSlot* thread_slot_used, std::int64_t deadline, bool event_decides,
                     std::int64_t slow_at) noexcept {
  auto* const coroutine = ::new (allocate(sizeof(CoroutineRun))) CoroutineRun;
  coroutine->run = run;
  coroutine->record = run->record;
  coroutine->bus = run->bus;
  coroutine->result = &run->results[index];
  coroutine->slot = slot_pool().take();
  coroutine->index = index;
  coroutine->handle = handle;
  coroutine->is_coroutine = true;
  handle.promise().frame = coroutine;
  // A token that the call asked for moves along.
  coroutine->slot->extra.store(thread_slot_used->extra.exchange(nullptr, std::memory_order_acq_rel),
                               std::memory_order_release);
  switch (publish(*coroutine->slot, run, index, deadline, event_decides, slow_at, nullptr, true, coroutine->running)) {
    case Start::running:
      break;
    case Start::cut_back:
      handle.destroy();
      finish_extra(*coroutine->slot);
      slot_pool().give_back(coroutine->slot);
      coroutine->~CoroutineRun();
      deallocate(coroutine);
      settle_cut(run, index, run->leg->cut.load(std::memory_order_acquire), true);
      return Step::settled;
    case Start::lost: {
      const Reclaimer::Pin pin = coroutine->slot->pin;
      handle.destroy();
      finish_extra(*coroutine->slot);
      slot_pool().give_back(coroutine->slot);
      coroutine->~CoroutineRun();
      deallocate(coroutine);
      leave_abandoned(run, pin);
      return Step::suspended;
    }
  }
  ExecFrame* const outer = current_frame;
  coroutine->thread_depth = frame_depth(outer) + 1;
  current_frame = coroutine;
  handle.resume();
  current_frame = outer;
  if (coroutine->state.exchange(CoroutineRun::left, std::memory_order_acq_rel) != CoroutineRun::completed)
    return Step::suspended;  // touch nothing: it may be over already
  // Lost: whoever took it goes on for the coroutine alone. What this thread has settled before is still its own to
  // count.
  return end_coroutine(coroutine) ? Step::settled : Step::suspended;
}

void RootTask::promise_type::final_awaiter::await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
  coroutine_finished(self.promise().frame);
}

void coroutine_finished(ExecFrame* frame) noexcept {
  auto* const coroutine = static_cast<CoroutineRun*>(frame);
  if (coroutine->state.exchange(CoroutineRun::completed, std::memory_order_acq_rel) != CoroutineRun::left)
    return;  // on the starter's stack, which goes on
  Run* const run = coroutine->run;
  const bool parallel = run->parallel;
  const std::uint32_t index = coroutine->index;
  // Any thread may be here, also one of the user's; the event may be over before what the run held has been passed on.
  BusCore* const bus = run->bus;
  retain_core(bus);
  ExecFrame* const mine = std::exchange(current_frame, nullptr);
  if (end_coroutine(coroutine)) {
    if (parallel) {
      participant_settled(run, index);
    } else {
      if (run->first_mode && usable(run->results[index]) && run->index < run->count) begin_cut(run->leg, Cut::first);
      advance(run, false);
    }
  }
  current_frame = mine == frame ? nullptr : mine;
  release_core(bus);
}

}  // namespace abxbus::detail

#include "bus/emit.hpp"
#include "bus/jump.hpp"
#include "bus/resolve.hpp"
#include "bus/waiting.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/names.hpp"

#include <abxbus/error.hpp>

#include <thread>

/// now() and wait() for threads: what they check, how they wait. The claiming is in jump.cpp, the awaitable forms are
/// in now_async.cpp.
namespace abxbus::detail {

namespace {

/// A child that the calling handler emitted and whose parent is that handler's event: awaiting it makes it a blocking
/// one (H-LIN-10).
bool emitted_by_caller(const Record* record, const ExecFrame* frame) noexcept {
  if (frame == nullptr) return false;
  RareData* const rare = record->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return false;
  const std::lock_guard lock(rare->mutex);  // another thread may be linking it to a handler of its own
  return rare->emitter_run == frame->result && rare->parent_id == event_id_of(frame->record);
}

}  // namespace

void make_blocking_unless_stale(Record* child) noexcept {
  make_blocking(child);
  if (caller_is_stale()) stop_blocking(child);  // whoever cut it short may have looked before the mark was there
}

void mark_awaited(Record* record) noexcept {
  if (emitted_by_caller(record, current_frame)) make_blocking_unless_stale(record);
}

bool check_waitable(Record* record, const char* operation) {
  if (record == nullptr) throw ValidationError("event must not be an empty handle", "event");
  if (record->completed()) return true;
  if (caller_is_stale())
    throw OperationCancelled(std::string(operation) + " was called by a handler that was cut short");
  if (!record->accepted()) throw ValidationError("event has no bus attached", "event");
  if ((record->flags.load(std::memory_order_acquire) & flag_dropped) != 0)
    throw_destroyed(record->first_leg.bus, operation);
  return false;
}

std::int64_t wait_deadline(const WaitOptions& options) {
  if (!options.timeout) return no_deadline;
  const double seconds = options.timeout->count();
  if (!(seconds >= 0)) throw ValidationError("timeout must be >= 0 or null", "timeout");
  if (seconds == 0) return no_deadline;
  const std::int64_t ns = nanoseconds(*options.timeout);
  return ns >= INT64_MAX / 2 ? no_deadline : steady_ns() + ns;
}

CallCancellation::CallCancellation(const std::stop_token& token, const std::function<void()>& cancel) {
  if (token.stop_possible()) own_ = std::make_unique<Callback>(token, cancel);
  if (current_frame != nullptr) handler_ = std::make_unique<Callback>(current_frame->stop_token(), cancel);
}

bool cancel_waiter(Record* record, Waiter& waiter) noexcept {
  if (!unlink_waiter(record, waiter)) return false;
  waiter.state.store(WaiterState::cancelled, std::memory_order_release);
  return true;
}

namespace {

/// Links the waiter, or sets its state to what is so already.
bool link_or_settle(Record* record, Waiter& waiter) noexcept {
  if (link_waiter(record, waiter)) return true;
  const std::uint32_t flags = record->flags.load(std::memory_order_acquire);
  const bool dropped = (flags & (flag_completed | flag_dropped)) == flag_dropped;
  waiter.state.store(dropped ? WaiterState::dropped : WaiterState::signalled, std::memory_order_relaxed);
  return false;
}

}  // namespace

void sleep_on(Record* record, Waiter& waiter, const std::stop_token& stop, std::int64_t deadline, Jump* jump) {
  waiter.jumps = jump != nullptr;
  if (!link_or_settle(record, waiter)) return;
  const auto* const word = reinterpret_cast<const std::atomic<std::uint32_t>*>(&waiter.state);
  const CallCancellation cancellation(stop, [&] {
    if (cancel_waiter(record, waiter)) futex_wake(*word, 1);
  });
  for (;;) {
    if (jump != nullptr) jump->go_on();
    {
      const WaitScope blocked;
      while (waiter.state.load(std::memory_order_acquire) == WaiterState::waiting) {
        futex_wait(*word, static_cast<std::uint32_t>(WaiterState::waiting), deadline);
        if (deadline != no_deadline && steady_ns() >= deadline && unlink_waiter(record, waiter))
          waiter.state.store(WaiterState::timed_out, std::memory_order_relaxed);
      }
    }
    if (waiter.state.load(std::memory_order_acquire) != WaiterState::look_again) return;
    waiter.state.store(WaiterState::waiting, std::memory_order_relaxed);
    if (!link_or_settle(record, waiter)) return;
    // A stop that came while the waiter was not linked has met nothing to cancel.
    if ((stop.stop_requested() || caller_is_stale()) && cancel_waiter(record, waiter)) return;
  }
}

void wait_for_event(Record* record, const WaitOptions& options, std::int64_t deadline, Jump* jump) {
  const auto done = [&] { return record->completed() || (options.first_result && has_usable_value(record)); };
  if (done()) return;
  if (options.stop_token.stop_requested()) throw OperationCancelled("the wait was stopped");
  // A short look before sleeping: a handed-over run is often over by then. Only while a core is left for it: a third
  // thread that looks on two cores takes one from those that work.
  static const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const WorkerPool& pool = *record->first_leg.bus->pool;
  const int outside = WorkerPool::of_this_thread() == nullptr ? 1 : 0;
  for (int i = 0; i < 2'000 && pool.runnable() + outside <= cores; ++i) {
    cpu_pause();
    if (done()) return;
    if (i % 50 == 49 && yield_core(pool.last_start_core())) break;
  }
  Waiter waiter;
  waiter.wants = options.first_result ? Waiter::first_result : Waiter::completion;
  sleep_on(record, waiter, options.stop_token, deadline, jump);
  switch (waiter.state.load(std::memory_order_acquire)) {
    case WaiterState::waiting:
    case WaiterState::look_again:
    case WaiterState::signalled:
      return;
    case WaiterState::dropped:
      throw_destroyed(record->first_leg.bus, "wait");
    case WaiterState::cancelled:
      throw OperationCancelled("the wait was stopped");
    case WaiterState::timed_out:
      throw TimeoutError("Timed out waiting for " + std::string(type_name_of(record)) +
                             (options.first_result ? " result after " : " completion after ") +
                             seconds_text(*options.timeout) + "s",
                         options.timeout);
  }
}

void jump_and_wait(Record* record, const WaitOptions& options, std::int64_t deadline) {
  Jump jump(record, options, true);
  jump.go_on();
  if (!record->completed()) wait_for_event(record, options, deadline, &jump);
}

void note_first_seen(Record* record, const WaitOptions& options) noexcept {
  if (options.first_result) record->flags.fetch_or(flag_first_seen, std::memory_order_acq_rel);
}

void now_blocking(RecordHead* head, WaitOptions& options) {
  Record* const record = as_record(head);
  const std::int64_t deadline = wait_deadline(options);
  if (check_waitable(record, "now")) {
    mark_awaited(record);
    return;
  }
  if (options.stop_token.stop_requested()) throw OperationCancelled("the wait was stopped");
  mark_awaited(record);
  jump_and_wait(record, options, deadline);
  if (caller_is_stale()) throw OperationCancelled("now was called by a handler that was cut short");
  note_first_seen(record, options);
}

void wait_blocking(RecordHead* head, WaitOptions& options) {
  Record* const record = as_record(head);
  const std::int64_t deadline = wait_deadline(options);
  if (check_waitable(record, "wait")) return;
  if (options.stop_token.stop_requested()) throw OperationCancelled("the wait was stopped");
  wait_for_event(record, options, deadline);
  if (caller_is_stale()) throw OperationCancelled("wait was called by a handler that was cut short");
  note_first_seen(record, options);
}

}  // namespace abxbus::detail

namespace abxbus {

BaseEvent BaseEvent::now(WaitOptions options) const {
  detail::now_blocking(record_.get(), options);
  return *this;
}
BaseEvent BaseEvent::wait(WaitOptions options) const {
  detail::wait_blocking(record_.get(), options);
  return *this;
}

}  // namespace abxbus

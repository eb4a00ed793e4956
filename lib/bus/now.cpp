#include "bus/emit.hpp"
#include "bus/resolve.hpp"
#include "bus/turn.hpp"
#include "bus/waiting.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/names.hpp"

#include <abxbus/error.hpp>

#include <algorithm>
#include <pthread.h>
#include <thread>

/// Immediate execution: claims the awaited event ahead of the queue and runs it here when that cannot be observed as
/// lateness (S-JMP-16), else on another worker.
namespace abxbus::detail {

namespace {

constexpr std::uint32_t max_inline_depth = 64;
constexpr std::ptrdiff_t stack_reserve = 128 * 1024;

/// Whether enough stack is left for one more handler on this thread.
bool stack_is_left() noexcept {
  thread_local const char* lowest = [] {
    pthread_attr_t attributes;
    void* base = nullptr;
    std::size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &base, &size);
      pthread_attr_destroy(&attributes);
    }
    return static_cast<const char*>(base);
  }();
  const char here = 0;
  return lowest == nullptr || &here - lowest > stack_reserve;
}

/// The chain of the calling handler holds the bus's turn.
bool chain_holds_turn(const Run* run, const BusCore* bus) noexcept {
  for (; run != nullptr; run = run->caller)
    if (run->bus == bus && (run->holds_turn || run->pauses)) return true;
  return false;
}
bool chain_holds_global(const Run* run, const DomainState* domain) noexcept {
  for (; run != nullptr; run = run->caller)
    if (run->holds_global && run->bus->domain.get() == domain) return true;
  return false;
}

/// Some deadline that could cut this frame's chain is nearer than `floor`, or a lost `first` race could.
bool chain_is_urgent(const ExecFrame* frame, std::int64_t now, std::int64_t floor) noexcept {
  if (frame == nullptr) return false;
  if (frame->run->chain_deadline_near || (frame->run->parallel && frame->run->first_mode)) return true;
  const std::int64_t deadline = frame->slot->deadline.load(std::memory_order_relaxed);
  return deadline != INT64_MAX && deadline - now < floor;
}

bool may_run_inline(Run* run, const ExecFrame* frame, const WaitOptions& options, std::int64_t now) noexcept {
  const std::int64_t floor = run->bus->options.inline_floor_ns;
  run->chain_deadline_near = chain_is_urgent(frame, now, floor);
  if (floor == 0 || run->chain_deadline_near) return false;
  if (options.timeout && options.timeout->count() > 0) return false;
  if (options.stop_token.stop_possible()) return false;
  if (run->event_deadline != INT64_MAX && run->event_deadline - now < floor) return false;
  if (run->parallel && run->first_mode) return false;
  if (options.first_result && run->count > 1) return false;
  const std::optional<Seconds>& handler_timeout = option_fields(run->record).event_handler_timeout;
  if (handler_timeout && handler_timeout->count() > 0 && nanoseconds(*handler_timeout) < floor) return false;
  if (run->bus->has_handler_timeouts->load(std::memory_order_relaxed)) {
    for (std::uint32_t i = 0; i < run->count; ++i) {
      const std::int64_t own = limits_of(run, run->results[i].entry).own_ns;
      if (own != 0 && own < floor) return false;
    }
  }
  if (run->depth >= max_inline_depth) return false;
  return run->depth < 4 || stack_is_left();
}

void run_handed_over(Job* job) noexcept {
  advance(static_cast<Run*>(job), false);
}

void start_here_or_elsewhere(Run* run, const ExecFrame* frame, const WaitOptions& options, bool may_run_here,
                             std::int64_t now) noexcept {
  if (may_run_here && may_run_inline(run, frame, options, now)) {
    run->by_caller = true;
    advance(run, false);
    return;
  }
  if (!may_run_here) run->chain_deadline_near = chain_is_urgent(frame, now, run->bus->options.inline_floor_ns);
  run->Job::run = &run_handed_over;
  push_ready(run->bus, run);
}

/// The turn is held by somebody else. As long as its holder gets through events quickly, this one's turn comes sooner
/// than pausing the bus would take: looks on for a few microseconds, the same to everybody as a call made that much
/// later. True: the turn may be free now. False: the leg has started, or the holder is stuck in a handler.
bool holder_moves_on(BusCore* bus, const Leg* leg) noexcept {
  constexpr int patience = 128;  // pauses without progress: about 2 us
  constexpr int limit = 1'024;   // in all: about 15 us
  std::uint64_t epoch = bus->turn_epoch.load(std::memory_order_relaxed);
  int still = 0;
  for (int i = 0; i < limit && still < patience; ++i) {
    cpu_pause();
    if (leg->state.load(std::memory_order_acquire) != LegState::queued) return false;
    if (!turn_is_held(*bus)) return true;
    const std::uint64_t now = bus->turn_epoch.load(std::memory_order_relaxed);
    still = now == epoch ? still + 1 : 0;
    epoch = now;
  }
  return false;
}

void jump_leg(Leg* leg, ExecFrame* frame, const WaitOptions& options, bool may_run_here, bool patient) noexcept {
  BusCore* const bus = leg->bus;
  if (bus->destroyed.load(std::memory_order_acquire)) return;
  const EventConcurrency mode = resolve_concurrency(leg->record, bus);
  if (mode == EventConcurrency::parallel) return;  // started at acceptance
  Run* const caller = frame != nullptr ? frame->run : nullptr;
  const bool global = mode == EventConcurrency::global_serial;
  DomainState* const domain = bus->domain.get();
  const std::int64_t now = std::max(now_ns(), leg->record->created_at + 1);

  if (chain_holds_turn(caller, bus) || (global && chain_holds_global(caller, domain))) {
    if (!claim_leg(leg)) return;
    Run* const run = start_run(leg, frame, false, now);
    run->nested = true;
    start_here_or_elsewhere(run, frame, options, may_run_here, now);
    return;
  }
  if (try_take_turn(bus)) {
    bool at_cursor = false;
    if (!claim_with_turn(bus, leg, at_cursor)) {
      release_turn(bus);
      return;
    }
    Run* const run = start_run(leg, frame, true, now);
    run->holds_turn = true;
    run->in_ticket_order = at_cursor;
    if (global) {
      run->holds_global = try_global_for_jump(bus, true);
    } else if (bus->global_granted) {
      give_back_grant(bus);
    }
    start_here_or_elsewhere(run, frame, options, may_run_here, now);
    return;
  }
  if (patient && holder_moves_on(bus, leg)) return jump_leg(leg, frame, options, may_run_here, false);
  if (leg->state.load(std::memory_order_acquire) != LegState::queued) return;
  // Held by an unrelated run: the event runs beside it, and the bus starts nothing else meanwhile (S-JMP-20, -22).
  pause_bus(bus);
  if (!claim_leg(leg)) {
    resume_bus(bus);
    return;
  }
  Run* const run = start_run(leg, frame, false, now);
  run->pauses = true;
  if (global) run->holds_global = try_global_for_jump(bus, false);
  start_here_or_elsewhere(run, frame, options, may_run_here, now);
}

/// A child that the calling handler emitted and whose parent is that handler's event: awaiting it makes it a blocking
/// one (H-LIN-10).
bool emitted_by_caller(const Record* record, const ExecFrame* frame) noexcept {
  if (frame == nullptr) return false;
  const RareData* const rare = record->rare.load(std::memory_order_acquire);
  return rare != nullptr && rare->emitter_run == frame->result && rare->parent_id == event_id_of(frame->record);
}

}  // namespace

void mark_awaited(Record* record) noexcept {
  if (emitted_by_caller(record, current_frame)) make_blocking(record);
}

void jump(Record* record, const WaitOptions& options, bool may_run_here) noexcept {
  ExecFrame* const frame = current_frame;
  for (Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    if (leg->state.load(std::memory_order_acquire) != LegState::queued) continue;
    jump_leg(leg, frame, options, may_run_here, true);
  }
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

void sleep_on(Record* record, Waiter& waiter, const std::stop_token& stop, std::int64_t deadline) {
  const auto* const word = reinterpret_cast<const std::atomic<std::uint32_t>*>(&waiter.state);
  if (!link_waiter(record, waiter)) {
    const std::uint32_t flags = record->flags.load(std::memory_order_acquire);
    const bool dropped = (flags & (flag_completed | flag_dropped)) == flag_dropped;
    waiter.state.store(dropped ? WaiterState::dropped : WaiterState::signalled, std::memory_order_relaxed);
    return;
  }
  const CallCancellation cancellation(stop, [&] {
    if (cancel_waiter(record, waiter)) futex_wake(*word, 1);
  });
  const WaitScope blocked;
  while (waiter.state.load(std::memory_order_acquire) == WaiterState::waiting) {
    futex_wait(*word, static_cast<std::uint32_t>(WaiterState::waiting), deadline);
    if (deadline != no_deadline && steady_ns() >= deadline && unlink_waiter(record, waiter))
      waiter.state.store(WaiterState::timed_out, std::memory_order_relaxed);
  }
}

void wait_for_event(Record* record, const WaitOptions& options, std::int64_t deadline) {
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
    if (record->completed()) return;
    if (i % 50 == 49 && yield_core(pool.last_start_core())) break;
  }
  Waiter waiter;
  waiter.wants = options.first_result ? Waiter::first_result : Waiter::completion;
  sleep_on(record, waiter, options.stop_token, deadline);
  switch (waiter.state.load(std::memory_order_acquire)) {
    case WaiterState::waiting:
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

namespace {

void note_first_seen(Record* record, const WaitOptions& options) noexcept {
  if (options.first_result) record->flags.fetch_or(flag_first_seen, std::memory_order_acq_rel);
}

}  // namespace

void now_blocking(RecordHead* head, WaitOptions& options) {
  Record* const record = as_record(head);
  const std::int64_t deadline = wait_deadline(options);
  if (check_waitable(record, "now")) {
    mark_awaited(record);
    return;
  }
  if (options.stop_token.stop_requested()) throw OperationCancelled("the wait was stopped");
  mark_awaited(record);
  // Forwarding handlers may add buses while the event runs: look again until it is completed or somebody else runs it.
  jump(record, options, true);
  if (!record->completed()) {
    wait_for_event(record, options, deadline);
  }
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

// -- awaitable forms
// ------------------------------------------------------------------------------------------------------

namespace {

/// The state behind now_async and wait_async. References: the consumer's, and one of the waiter while it is linked.
class EventFuture final : public FutureState {
 public:
  EventFuture(RecordHead* record, const WaitOptions& options) : record_(RecordPtr::share(record)), options_(options) {
    waiter_.wants = options.first_result ? Waiter::first_result : Waiter::completion;
    waiter_.owner = this;
    waiter_.notify = [](Waiter* waiter) noexcept { static_cast<EventFuture*>(waiter->owner)->signalled(); };
  }
  ~EventFuture() override = default;

  void start(std::int64_t deadline) {
    Record* const record = as_record(record_.get());
    retain();  // the waiter's
    if (!link_waiter(record, waiter_)) {
      if ((record->flags.load(std::memory_order_acquire) & (flag_completed | flag_dropped)) == flag_dropped)
        waiter_.state.store(WaiterState::dropped, std::memory_order_relaxed);
      signalled();
      return;
    }
    const auto cancel = [this] { end_early(WaiterState::cancelled); };
    cancellation_.emplace(options_.stop_token, cancel);
    if (deadline != no_deadline) {
      retain();  // the timer's
      expiry_.state = this;
      expiry_.run = &expire;
      timer_ = watchdog().arm(
          deadline,
          [](void* context) {
            auto* const self = static_cast<EventFuture*>(context);
            as_record(self->record_.get())->first_leg.bus->pool->submit(&self->expiry_, WorkerPool::Urgency::at_once);
          },
          this);
      timer_armed_ = true;
    }
  }
  void abandon() noexcept override {
    cancellation_.reset();
    if (timer_armed_ && watchdog().disarm(timer_)) release();
    if (unlink_waiter(as_record(record_.get()), waiter_)) release();
  }

 private:
  /// The end of a wait that took too long: on the pool, since errors, and events that go with the last reference, are
  /// nothing for the watchdog's thread.
  struct Expiry : Job {
    EventFuture* state = nullptr;
  };
  static void expire(Job* job) noexcept {
    EventFuture* const self = static_cast<Expiry*>(job)->state;
    self->end_early(WaiterState::timed_out);
    self->release();
  }
  void end_early(WaiterState reason) noexcept {
    if (!unlink_waiter(as_record(record_.get()), waiter_)) return;
    waiter_.state.store(reason, std::memory_order_release);
    signalled();
  }
  void signalled() noexcept {
    Record* const record = as_record(record_.get());
    switch (waiter_.state.load(std::memory_order_acquire)) {
      case WaiterState::cancelled:
        fail(std::make_exception_ptr(OperationCancelled("the wait was stopped")));
        break;
      case WaiterState::timed_out:
        fail(
            std::make_exception_ptr(TimeoutError("Timed out waiting for " + std::string(type_name_of(record)) +
                                                     (options_.first_result ? " result after " : " completion after ") +
                                                     seconds_text(*options_.timeout) + "s",
                                                 options_.timeout)));
        break;
      case WaiterState::dropped:
        try {
          throw_destroyed(record->first_leg.bus, "now");
        } catch (...) {
          fail(std::current_exception());
        }
        break;
      case WaiterState::waiting:
      case WaiterState::signalled:
        note_first_seen(record, options_);
        event = record_;
        complete();
        break;
    }
    release();
  }

  Waiter waiter_;
  RecordPtr record_;
  WaitOptions options_;
  std::optional<CallCancellation> cancellation_;
  TimerHeap::Key timer_{};
  bool timer_armed_ = false;
  Expiry expiry_;
};

future<BaseEvent> start_async(RecordHead* head, const WaitOptions& options, bool jump_first) {
  Record* const record = as_record(head);
  auto* const state = new EventFuture(head, options);
  FuturePtr pointer(state);
  try {
    const std::int64_t deadline = wait_deadline(options);
    const bool completed = check_waitable(record, jump_first ? "now" : "wait");
    if (jump_first) mark_awaited(record);
    if (!completed && jump_first) jump(record, options, false);
    state->start(deadline);
  } catch (...) {
    state->fail(std::current_exception());
  }
  return {std::move(pointer), [](FutureState& done) { return BaseEvent(take_event(done)); }};
}

}  // namespace

RecordPtr take_event(FutureState& state) noexcept {
  return std::move(state.event);
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
future<BaseEvent> BaseEvent::now_async(WaitOptions options) const {
  return detail::start_async(record_.get(), options, true);
}
future<BaseEvent> BaseEvent::wait_async(WaitOptions options) const {
  return detail::start_async(record_.get(), options, false);
}

}  // namespace abxbus

#include "bus/jump.hpp"

#include "bus/completion.hpp"
#include "bus/resolve.hpp"
#include "bus/turn.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"

#include <algorithm>
#include <pthread.h>

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

/// The chain of the calling handler holds the bus's turn. Runs further up may be over, cut short while what they called
/// goes on: of those nothing but the identities may be looked at, and they hold nothing.
bool chain_holds_turn(const Run* run, const BusCore* bus) noexcept {
  for (; run != nullptr; run = run->caller)
    if (run->bus == bus && (run->holds_turn || run->pauses) && !run->over.load(std::memory_order_acquire)) return true;
  return false;
}
bool chain_holds_global(const Run* run, const DomainState* domain) noexcept {
  for (; run != nullptr; run = run->caller)
    if (run->holds_global && run->domain == domain && !run->over.load(std::memory_order_acquire)) return true;
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

/// True: the leg is this call's now, running or over.
bool jump_leg(Leg* leg, const ExecFrame* frame, const WaitOptions& options, bool may_run_here, bool patient) noexcept {
  BusCore* const bus = leg->bus;
  if (bus->destroyed.load(std::memory_order_acquire)) return false;
  const EventConcurrency mode = resolve_concurrency(leg->record, bus);
  if (mode == EventConcurrency::parallel) return false;  // started at acceptance
  Run* const caller = frame != nullptr ? frame->run : nullptr;
  const bool global = mode == EventConcurrency::global_serial;
  DomainState* const domain = bus->domain.get();
  const std::int64_t now = std::max(now_ns(), leg->record->created_at + 1);

  if (chain_holds_turn(caller, bus) || (global && chain_holds_global(caller, domain))) {
    if (!claim_leg(leg)) return false;
    Run* const run = start_run(leg, frame, false, now);
    run->nested = true;
    start_here_or_elsewhere(run, frame, options, may_run_here, now);
    return true;
  }
  if (try_take_turn(bus)) {
    bool at_cursor = false;
    if (!claim_with_turn(bus, leg, at_cursor)) {
      release_turn(bus);
      return false;
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
    return true;
  }
  if (patient && holder_moves_on(bus, leg)) return jump_leg(leg, frame, options, may_run_here, false);
  if (leg->state.load(std::memory_order_acquire) != LegState::queued) return false;
  // Held by an unrelated run: the event runs beside it, and the bus starts nothing else meanwhile (S-JMP-20, -22).
  pause_bus(bus);
  if (!claim_leg(leg)) {
    resume_bus(bus);
    return false;
  }
  Run* const run = start_run(leg, frame, false, now);
  run->pauses = true;
  if (global) run->holds_global = try_global_for_jump(bus, false);
  start_here_or_elsewhere(run, frame, options, may_run_here, now);
  return true;
}

}  // namespace

Jump::Jump(Record* record, const WaitOptions& options, bool may_run_here) noexcept
    : record_(record), options_(options), caller_(current_frame), may_run_here_(may_run_here) {}

void Jump::outlive_caller() noexcept {
  if (caller_ == nullptr) return;
  retain_run(caller_->run);
  run_ = caller_->run;
  copy_ = *caller_;
  caller_ = &copy_;
}

Jump::~Jump() {
  if (run_ != nullptr) release_run(run_);
}

void Jump::go_on() noexcept {
  for (Leg* leg = &record_->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    const LegState state = leg->state.load(std::memory_order_seq_cst);
    if (leg == running_ && state != LegState::finished) return;  // its end says so: look_for_legs
    if (state != LegState::queued) continue;
    if (caller_ != nullptr && caller_->stale()) return;
    if (!jump_leg(leg, caller_, options_, may_run_here_, true)) continue;
    running_ = leg;
    if (leg->state.load(std::memory_order_seq_cst) != LegState::finished) return;
  }
}

}  // namespace abxbus::detail

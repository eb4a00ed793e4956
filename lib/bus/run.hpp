#pragma once

#include "bus/core.hpp"
#include "dispatch/exec_slot.hpp"

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

/// The processing of one event by one bus.
///
/// Baton: a run has one; it is held by whoever may take its next step. Serial run: the holder is the thread between
/// handlers, or *is* the RUNNING slot of the current handler; the winner of the compare-exchange out of RUNNING is the
/// next holder. Parallel run: the counter `left` is the baton; who brings it to 0 finishes the run. Turn, global lock
/// and position belong to the run, never to a thread: whoever holds the baton at the end releases them.
///
/// Lifetime: `refs` counts the baton (1), each abandoned executor, each nested run on the chain, and each participant
/// and pending helper of a fan-out. The record is held by the bus's reference until the event is completed on this bus;
/// abandoned executors hold one of their own.
namespace abxbus::detail {

struct ParallelState;

struct Run : Job {
  Record* record = nullptr;
  Leg* leg = nullptr;
  BusCore* bus = nullptr;               ///< may be gone once the run is over
  const DomainState* domain = nullptr;  ///< identity only
  HandlerRun* results = nullptr;
  std::uint32_t count = 0;
  std::uint32_t index = 0;  ///< baton holder: next handler of a serial run
  std::int64_t event_deadline = INT64_MAX;
  std::int64_t event_slow_at = INT64_MAX;
  Run* caller = nullptr;                  ///< chain: the run whose handler's now() started this one (counted)
  const ExecSlot* caller_slot = nullptr;  ///< that handler: its slot, and the slot's word while it runs
  std::uint64_t caller_running = 0;
  std::atomic<std::uint32_t> refs{1};
  std::uint32_t depth = 0;  ///< inline nesting
  bool holds_turn = false;  ///< this run holds the bus's turn
  bool by_caller = false;   ///< the thread that awaits the event runs it itself
  bool holds_global = false;
  bool pauses = false;           ///< runs beside the turn and pauses the bus until it ends
  bool nested = false;           ///< runs under a hold of its chain
  bool in_ticket_order = false;  ///< taken at the cursor of the log
  bool parallel = false;         ///< handlers overlap
  bool first_mode = false;
  bool pinned = false;
  /// What the run holds is being passed on: a nested run whose caller was cut short finds nothing to run under any
  /// more. Release by the finisher, acquire by who walks a chain; a walk that comes a moment early meets a hold that
  /// ends.
  std::atomic<bool> over{false};
  std::atomic<bool> timed_out{
      false};  ///< a handler hit its own deadline: report it (T-SLOW-8). Settlers set, finisher reads
  bool chain_deadline_near = false;  ///< a deadline on the chain is nearer than the inline floor
  Reclaimer::Pin pin = 0;
  std::int64_t finished_at = 0;  ///< event clock; for who goes on with the same reading
  std::unique_ptr<ParallelState> fan_out;
  /// The one error object that the results of a cut share as their cause (T-NST-5).
  std::once_flag cause_once;
  std::exception_ptr cut_cause;
};

/// What a handler run owns beside its result: stop source, made on first need. Reference counted: a taker may still use
/// it when the executor has left.
struct ExecExtra {
  std::atomic<std::uint32_t> refs{1};
  std::stop_source stop;
};
void release_extra(ExecExtra* extra) noexcept;

/// The handler that executes on a thread, or a coroutine handler wherever it is. Lives on the executor's stack, or in
/// CoroutineRun.
struct ExecFrame {
  Run* run = nullptr;
  Record* record = nullptr;
  BusCore* bus = nullptr;
  HandlerRun* result = nullptr;
  ExecSlot* slot = nullptr;
  std::uint64_t running = 0;   ///< the slot's word while it runs
  ExecFrame* outer = nullptr;  ///< frame of the same thread below this one
  std::uint32_t thread_depth = 0;
  bool is_coroutine = false;
  bool is_notice = false;  ///< stands for a handler that was cut short while its stop callbacks are called elsewhere

  /// The result has become terminal while the code still executes.
  bool stale() const noexcept {
    const std::uint64_t word = slot->word.load(std::memory_order_acquire);
    return (word & ~slot_pin) != running;
  }
  std::stop_token stop_token();
};

inline std::uint32_t frame_depth(const ExecFrame* frame) noexcept {
  return frame == nullptr ? 0 : frame->thread_depth;
}

/// Frames of the calling thread whose handlers of `bus` were cut short.
inline std::uint32_t stale_frames_of(const BusCore* bus) noexcept {
  std::uint32_t count = 0;
  for (const ExecFrame* frame = current_frame; frame != nullptr; frame = frame->outer)
    if (frame->bus == bus && !frame->is_notice && frame->stale()) ++count;
  return count;
}

enum class Outcome : std::uint8_t {
  finished,  ///< the run is over; it has released what it held
  left       ///< the baton is elsewhere: suspended, abandoned, or other participants still work
};

/// Makes the run of a claimed leg: snapshot of the handlers, results pending, modes and deadlines resolved.
/// `caller`: the handler whose now() starts it, null for the drain and calls from outside.
Run* start_run(Leg* leg, const ExecFrame* caller, bool turn_protects, std::int64_t now) noexcept;
/// Takes the run's next steps until it is over or the baton goes elsewhere.
/// `keep_turn`: the caller holds the run's turn and goes on with it when the run ends here.
Outcome advance(Run* run, bool keep_turn) noexcept;
/// Parallel: opens the fan-out and takes part in it.
Outcome advance_parallel(Run* run, bool keep_turn) noexcept;
/// One handler on this thread. `lost`: it was taken, touch nothing: the taker has counted what this thread had settled.
/// `suspended`: a coroutine, which somebody else brings to its end, or has; this thread is free.
enum class Step : std::uint8_t { settled, suspended, lost };
Step execute(Run* run, std::uint32_t index, struct Share* share) noexcept;

/// All results are terminal: completes the leg, maybe the event, and passes on what the run holds.
void finish_run(Run* run, bool keep_turn) noexcept;
/// One warning for each handler run that hit its own deadline (T-SLOW-8).
void report_handler_timeouts(Run* run) noexcept;
/// Takes the result's own reference on its entry; once, by who starts or cancels it. The result inside the record got
/// its reference when the run started.
void hold_entry(const Run* run, HandlerRun& result) noexcept;
/// Value that wins `first` and satisfies the default filter (T-RES-4).
bool usable(const HandlerRun& result) noexcept;
/// Sets the reason unless one is there; true when it is ours.
bool begin_cut(Leg* leg, Cut reason) noexcept;
/// Why nothing more may start, if so. A destroyed bus cuts every run that its destroy did not meet itself.
Cut cut_of(const Run* run) noexcept;
void return_credits(BusCore* bus) noexcept;

/// Starts the coroutine that a handler call returned. `slot`: the thread's slot of that call, whose token moves along.
Step start_coroutine(Run* run, std::uint32_t index, std::coroutine_handle<RootTask::promise_type> handle,
                     ExecSlot* slot, std::int64_t deadline, bool event_decides, std::int64_t slow_at) noexcept;
/// A coroutine handler has come to its end on some thread.
void coroutine_finished(ExecFrame* frame) noexcept;

void retain_run(Run* run) noexcept;
void release_run(Run* run) noexcept;

/// Effective timeout of a handler, nanoseconds, 0: none (T-TMO-12), and whether it has one of its own.
struct HandlerLimits {
  std::int64_t own_ns = 0;    ///< explicit handler timeout
  std::int64_t event_ns = 0;  ///< effective event timeout
  std::int64_t slow_ns = 0;   ///< slow threshold
  std::int64_t effective() const noexcept {
    if (own_ns == 0) return event_ns;
    if (event_ns == 0) return own_ns;
    return own_ns < event_ns ? own_ns : event_ns;
  }
};
HandlerLimits limits_of(const Run* run, const Entry* entry) noexcept;

}  // namespace abxbus::detail

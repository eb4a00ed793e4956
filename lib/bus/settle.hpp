#pragma once

#include "bus/run.hpp"

/// Bringing a result to its end. Called once a result, by whoever won it (run.hpp). No user code except destructors of
/// values that are dropped.
namespace abxbus::detail {

/// What the handler returned or threw.
void settle_outcome(Run* run, std::uint32_t index, Value&& value, std::exception_ptr error,
                    struct Share* share) noexcept;
/// Cut short for `reason`, before it started or while it ran.
void settle_cut(Run* run, std::uint32_t index, Cut reason, bool was_running) noexcept;
/// Its own deadline passed.
void settle_handler_timeout(Run* run, std::uint32_t index) noexcept;

/// Takes everything of the leg that runs and settles it for `reason`; then goes on with the runs it got the baton of.
/// `spare`: the calling handler; it and the handlers that its chain executes for are left alone (S-DST-11).
void take_running(Leg* leg, Cut reason, const ExecFrame* spare) noexcept;
/// The same with everything that runs on the bus.
void take_running_on(const BusCore* bus, Cut reason, const ExecFrame* spare) noexcept;
/// The winner of a slot whose result is settled: gives the executor its references, lets it leave, and asks it to stop
/// (on this thread if `may_call_out`, else on the pool).
void release_executor(ExecSlot& slot, Run* run, std::uint32_t index, bool may_call_out) noexcept;
/// Goes on with a run after taking one of its handlers. `uncounted`: handlers that its executor had settled and not yet
/// subtracted, read before the executor could leave.
void continue_after_taking(Run* run, std::uint32_t uncounted) noexcept;

/// How many handlers are abandoned in the process; warns once above 64 (T-CAN-23).
void count_abandoned(int change) noexcept;

}  // namespace abxbus::detail

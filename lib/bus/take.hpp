#pragma once

#include "bus/run.hpp"

/// Taking running handlers from their executors (protocol in dispatch/exec_slot.hpp).
namespace abxbus::detail {

/// Takes everything of the leg that runs and settles it for `reason`; then goes on with the runs it got the baton of.
/// `spare`: the calling handler; it and the handlers that its chain executes for are left alone (S-DST-11).
void take_running(Leg* leg, Cut reason, const ExecFrame* spare) noexcept;
/// The same with everything that runs on the bus.
void take_running_on(const BusCore* bus, Cut reason, const ExecFrame* spare) noexcept;
/// Returns when nobody is between taking a handler of the bus and counting it as abandoned (BusCore::abandoned): the
/// watchdog takes at once and leaves the rest to the pool.
void wait_for_takers(const BusCore* bus) noexcept;
/// The winner of a slot whose result is settled: gives the executor its references, lets it leave, and asks it to stop
/// (on this thread if `may_call_out`, else on the pool).
void release_executor(ExecSlot& slot, Run* run, std::uint32_t index, bool may_call_out) noexcept;
/// Goes on with a run after taking one of its handlers. `uncounted`: handlers that its executor had settled and not yet
/// subtracted, read before the executor could leave.
void continue_after_taking(Run* run, std::uint32_t uncounted) noexcept;

/// How many handlers are abandoned in the process; warns once above 64 (T-CAN-23).
void count_abandoned(int change) noexcept;
/// What the executor of a taken slot has settled of a parallel run and not subtracted. Before it may leave: its share
/// may be on its stack.
std::uint32_t uncounted_of(const ExecSlot& slot) noexcept;
/// A pool thread that stays in a handler which was taken from it is known to be blocked: others may join for it.
void count_out(ExecSlot& slot, WorkerPool* pool) noexcept;

}  // namespace abxbus::detail

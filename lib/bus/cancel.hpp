#pragma once

#include "bus/run.hpp"

#include <exception>

/// Cancelling the blocking children of handlers that were cut short (T-NST, S-FST-9, S-JMP-15).
///
/// A child is found in its parent's list, which does not grow once the emitting handler's result is terminal: a stale
/// handler's emits are dropped. Three hand-overs are decided without a lock that is held meanwhile:
/// - a child that becomes blocking at that moment: its emitter marks it, then looks whether it is stale itself and
/// takes
///   the mark back (waiting.hpp, `mark_awaited`); the canceller's taking of the slot comes before its look at the mark.
///   Both sides have a read-modify-write between the two, so at least one sees the other.
/// - a leg that is added at that moment: the canceller sets flag_cancelled, then walks the legs; who adds one publishes
///   it, then reads the flag (both seq_cst).
/// - a leg that is starting: begin_cut comes before the claim, and whoever starts a handler reads the cut after
///   publishing that it runs (ExecSlot::word).
namespace abxbus::detail {

/// Of the handlers of the run, that one, or all of them (`whole_event`): cancels their blocking children, and what
/// those wait for, without recursion. `reason`: why they were cut short; it decides on the cause (T-NST-5). The caller
/// holds the baton of a serial run.
///
/// Handlers are cut from the top down: none may go on because what it waits for has been cancelled before it was cut
/// itself. Events complete from the bottom up all the same, since a parent is held by its blocking children.
void cancel_children(Run* run, std::uint32_t index, bool whole_event, Cut reason) noexcept;
/// The leg has been added to an event that may have been cancelled meanwhile. The caller has a reference to the event.
void cancel_late_leg(Leg* leg) noexcept;

}  // namespace abxbus::detail

#pragma once

#include "bus/core.hpp"

/// The turn of a bus: its event lock and the right to drain it.
///
/// Word: bits 0-1 owner (FREE, SCHED: a drain job is on its way, HELD), bit 2 ATTN (somebody wants something of the
/// holder: pause, closing, head waiting for the global lock), bits 3.. cursor, exact while FREE or SCHED.
///
///   FREE,c=t -> SCHED       emitter of ticket c after publishing it (then submits the drain)
///   SCHED -> HELD           the drain
///   FREE|SCHED -> HELD      now() on a free bus
///   HELD -> SCHED           the drain at its quantum, now() with work left at the cursor
///   HELD -> FREE,c          the holder with slot[c] null; then it looks at slot[c] again
///   any -> |ATTN            under the arbiter; while ATTN is set every change is made under the arbiter
///
/// Invariants: at most one thread acts as holder. The cursor moves only forward and only by the holder, over published
/// slots whose leg is not QUEUED. If slot[cursor] is published and ATTN is clear, then the owner is not FREE or
/// somebody is between publishing (releasing) and its compare-exchange: Dekker pair (slot, turn), all accesses seq_cst.
/// So the emitter of any other ticket than the cursor's need do nothing: the emitter of the cursor's ticket, or the
/// drain it wakes, covers it.
namespace abxbus::detail {

/// After publishing ticket `ticket`: wakes a drain if the bus needs one.
void wake_after_publish(BusCore* bus, std::uint64_t ticket) noexcept;
/// After publishing a ticket that the drain steps over (lane, history only): moves a free turn's cursor past it, so
/// that the emitter of the next serial ticket finds the cursor at its own.
void step_over(BusCore* bus, std::uint64_t ticket) noexcept;
/// Takes a FREE or SCHED turn without ATTN.
bool try_take_turn(BusCore* bus) noexcept;
/// Gives the turn up: to a drain if there is work at the cursor, else FREE. `by_caller`: the event has been run by the
/// thread that awaits it.
void release_turn(BusCore* bus, bool by_caller = false) noexcept;
/// The drain job's body.
void drain(Job* job) noexcept;
/// The drain job is not wanted, as far as could be seen.
void let_go_of_drain(Job* job) noexcept;
/// Tells the emitting threads when the bus has drained a burst.
void note_if_burst_over(BusCore* bus) noexcept;
DrainLook look_at_drain(Job* job, DrainMemory& memory) noexcept;
void submit_drain(BusCore* bus) noexcept;

/// Under the arbiter: the word's cursor may be handed on; clears ATTN when no reason is left and wakes the bus.
void attention_over(BusCore* bus) noexcept;
/// Under the arbiter: sets ATTN and returns the owner before.
std::uint64_t set_attention(BusCore* bus) noexcept;

/// A run that pauses the bus (it runs beside the turn) begins / is over.
void pause_bus(BusCore* bus) noexcept;
void resume_bus(BusCore* bus) noexcept;

/// The global lock. `acquire_global` is called by the turn's holder for the head: true = taken, false = queued, and
/// the turn has been given up. `try_global_for_jump`: takes it if it is free.
bool acquire_global_for_head(BusCore* bus) noexcept;
bool try_global_for_jump(BusCore* bus, bool has_turn) noexcept;
void release_global(DomainState* domain) noexcept;

/// Under the arbiter: hands a free global lock to the first head that is ready.
void grant_global(DomainState* domain) noexcept;
/// The head for which the global lock was reserved is gone. The turn's holder.
void give_back_grant(BusCore* bus) noexcept;
/// Under the arbiter: the bus may not go on with its head now, so the reserved lock goes to another; it keeps its
/// place.
void put_off_grant(BusCore* bus) noexcept;
/// The bus is being destroyed: its turn's holder is told, and it waits for the global lock no more.
void close_turn(BusCore* bus) noexcept;

/// Claims a leg through its slot: the one word that arbitrates between drain, lane, now() and destroy, in memory that
/// stays valid until the cursors have passed it. The record may be looked at only by the winner (or under a reference).
inline bool claim_slot(std::atomic<std::uintptr_t>& slot) noexcept {
  return (slot.fetch_or(slot_spent, std::memory_order_seq_cst) & slot_spent) == 0;
}
/// Claims a leg that the caller has a reference to.
bool claim_leg(Leg* leg) noexcept;
/// The same for the turn's holder, cheaply when the leg is at the cursor.
bool claim_with_turn(BusCore* bus, Leg* leg, bool& at_cursor) noexcept;

/// Starts parallel-mode events that have been published, in acceptance order.
void advance_lane(BusCore* bus, std::uint64_t ticket) noexcept;

}  // namespace abxbus::detail

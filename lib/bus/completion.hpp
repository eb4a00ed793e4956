#pragma once

#include "bus/core.hpp"
#include "dispatch/job.hpp"

#include <cstdint>

/// The end of legs and events, and who waits for it.
///
/// Counting, never scanning: `Record::holds` = open legs + open blocking children. Who brings it to 0 completes the
/// event, exactly once, because nothing raises it from 0 (an accept of a completed event is decided under ACCEPTING).
/// Order (T-CAN-4): results terminal, completed_at, removal from zero histories, COMPLETED, waiters, trimming, the
/// parent's hold, iteratively upwards, then turn and locks.
///
/// Waiters: an intrusive list under the record's WAITER_LOCK bit. A waiter links itself under the bit unless COMPLETED
/// is set; the completer sets COMPLETED first and then takes the list under the bit. So the bit serialises "seen
/// completed?" against "list taken": no lost wake-up. A node is touched last by the store of its state.
namespace abxbus::detail {

/// `look_again`: the waiter has been unlinked so that its jump may go on; it links itself anew.
enum class WaiterState : std::uint32_t { waiting, signalled, dropped, cancelled, timed_out, look_again };

/// One wait for an event. Lives in the waiting call's frame, or in a future's state.
struct Waiter {
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool linked = false;  ///< under the bit
  enum Wants : std::uint8_t { completion, first_result, any_result } wants = completion;
  bool jumps = false;               ///< wants to be told of legs that it may claim
  const HandlerRun* run = nullptr;  ///< any_result: the one that counts
  /// Set under the bit (release), the last touch of a blocking node; read by its owner (acquire). Futex word.
  std::atomic<WaiterState> state{WaiterState::waiting};
  /// Null: a thread sleeps on `state`. Else called after the node was unlinked, outside the bit.
  void (*notify)(Waiter*) noexcept = nullptr;
  void* owner = nullptr;
};

/// Links the waiter; false when there is nothing to wait for: the event is completed or dropped (or, for a waiter that
/// wants a result, it is there).
bool link_waiter(Record* record, Waiter& waiter) noexcept;
/// False: it has been signalled already.
bool unlink_waiter(Record* record, Waiter& waiter) noexcept;

/// A result has been settled while the event goes on: releases who waits for it, and with a usable value those who want
/// the first. Dekker (HandlerRun::status, flag_wants_first): status, fence, flag; a waiter sets the flag, then looks.
void result_settled(Record* record, bool is_usable) noexcept;
/// The same after any number of results, for a caller with a seq_cst read-modify-write between the last of them and
/// this. A handler run leaves it to the next start of its thread (its exchange to RUNNING is that operation), to the
/// count of the fan-out, or to the end of the run, so that a result costs no fence of its own.
void tell_result_waiters(Record* record) noexcept;
bool has_usable_value(const Record* record) noexcept;

/// A queued leg will never run (destroy).
void drop_leg(Leg* leg) noexcept;
/// Gives one hold back; completes the event, and its ancestors as far as they were waiting for it.
void release_hold(Record* record, std::int64_t now) noexcept;
/// The same for a leg that has run; when others are open, tells those who jump that the next one is theirs.
void release_leg(Record* record, std::int64_t now) noexcept;
/// A leg has been published, or is over: who jumps looks again. The caller has a reference, and a seq_cst operation or
/// a full fence between that and this (Dekker with flag_jumps, see Jump).
void look_for_legs(Record* record) noexcept;
/// Makes the child one that its parent waits for.
void make_blocking(Record* child) noexcept;
/// Takes that back, unless the child's completion comes first.
void stop_blocking(Record* child) noexcept;

void notify_idle(BusCore* bus) noexcept;
bool bus_is_idle(const BusCore* bus) noexcept;

/// Starts a parallel-mode event; its handlers are run by the pump.
void start_parallel_run(Leg* leg) noexcept;

}  // namespace abxbus::detail

#include "bus/turn.hpp"

#include "bus/completion.hpp"
#include "bus/turn_word.hpp"
#include "event/burst.hpp"
#include "event/hooks.hpp"

namespace abxbus::detail {

void note_if_burst_over(BusCore* bus) noexcept {
  // Relaxed, and an exchange so that it is said once: a hint (event/burst.hpp).
  if (bus->in_burst.load(std::memory_order_relaxed) && bus->in_burst.exchange(false, std::memory_order_relaxed))
    note_burst_over();
}

void after_free(BusCore* bus) noexcept {
  note_if_burst_over(bus);
  if (bus->reclaimer.has_retired()) bus->reclaimer.collect();
  if (bus->idle_waiters.load(std::memory_order_seq_cst) != 0) notify_idle(bus);
}

void submit_drain(BusCore* bus) noexcept {
  // The taker clears the mark before it looks at the turn: reading 1 here means that look is still to come and will see
  // the SCHED that the caller has just written.
  if (bus->drain_queued.load(std::memory_order_seq_cst)) return;
  if (bus->drain_queued.exchange(true, std::memory_order_seq_cst)) return;
  retain_core(bus);
  bus->pool->submit(&bus->drain_job);
}

void wake_after_publish(BusCore* bus, std::uint64_t ticket) noexcept {
  std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  while (turn_owner(word) == turn_free && (word & turn_attention) == 0 && turn_cursor(word) == ticket) {
    if (bus->turn.compare_exchange_weak(word, turn_word(ticket, turn_scheduled), std::memory_order_seq_cst)) {
      submit_drain(bus);
      return;
    }
  }
}

bool claim_leg(Leg* leg) noexcept {
  if (leg->state.load(std::memory_order_acquire) != LegState::queued) return false;
  EventLog& log = leg->bus->log;
  const ReaderGuard guard(log);
  LogSegment* const segment = log.find(leg->ticket);
  if (segment == nullptr || segment->number != leg->ticket / segment_slots) return false;  // over and forgotten
  if (!claim_slot(segment->slots[leg->ticket % segment_slots])) return false;
  leg->state.store(LegState::claimed, std::memory_order_release);
  return true;
}

bool try_take_turn(BusCore* bus) noexcept {
  std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  while (turn_owner(word) != turn_held && (word & turn_attention) == 0) {
    const std::uint64_t held = turn_word(turn_cursor(word), turn_held);
    if (bus->turn.compare_exchange_weak(word, held, std::memory_order_seq_cst)) {
      bus->held_word = held;
      bus->cursor = turn_cursor(word);
      return true;
    }
  }
  return false;
}

namespace {

/// HELD -> FREE. False: somebody wants the holder's attention, and the turn is still held.
bool free_turn(BusCore* bus) noexcept {
  const std::uint64_t cursor = bus->cursor;
  std::uint64_t expected = bus->held_word;
  if (!bus->turn.compare_exchange_strong(expected, turn_word(cursor, turn_free), std::memory_order_seq_cst))
    return false;  // attention: the caller's loop meets it
  ABXBUS_HOOK(drain_released);
  return true;
}

/// After FREE,c was written: is there work at c that nobody would wake for? Then takes the turn again.
bool retake_if_published(BusCore* bus, std::uint64_t cursor) noexcept {
  // Common case, without touching a slot: ticket c has not been taken, so its emitter is still to come and will see the
  // turn free (Dekker tail, turn: it takes the ticket, publishes, then reads the turn; all seq_cst).
  if ((bus->log.tail() & ~log_closed) <= cursor) return false;
  // The cursor may be somebody else's by now, and the segment gone: only a reader may look.
  const ReaderGuard guard(bus->log);
  LogSegment* const segment = bus->log.find(cursor);
  if (segment == nullptr || segment->number != cursor / segment_slots) return false;
  if ((segment->slots[cursor % segment_slots].load(std::memory_order_seq_cst) & ~slot_bits) == 0) return false;
  std::uint64_t expected = turn_word(cursor, turn_free);
  const std::uint64_t held = turn_word(cursor, turn_held);
  if (!bus->turn.compare_exchange_strong(expected, held, std::memory_order_seq_cst)) return false;
  bus->held_word = held;
  bus->cursor = cursor;
  return true;
}

}  // namespace

bool attend(BusCore* bus) noexcept {
  const std::lock_guard lock(bus->domain->arbiter);
  if (bus->pause != 0 || bus->closing) {
    bus->turn.store(turn_word(bus->cursor, turn_free | turn_attention), std::memory_order_seq_cst);
    put_off_grant(bus);
    return false;
  }
  const std::uint64_t held = turn_word(bus->cursor, turn_held);
  bus->turn.store(held, std::memory_order_seq_cst);
  bus->held_word = held;
  return true;
}

bool release_if_dry(BusCore* bus) noexcept {
  if (bus->global_granted) give_back_grant(bus);  // its head went to a now()
  const std::uint64_t cursor = bus->cursor;
  if (!free_turn(bus)) {
    if (attend(bus)) return false;
    after_free(bus);
    return true;
  }
  if (retake_if_published(bus, cursor)) return false;
  after_free(bus);
  return true;
}

void release_turn(BusCore* bus, bool by_caller) noexcept {
  for (;;) {
    skip_done(bus);
    if (!published_at_cursor(bus)) {
      if (release_if_dry(bus)) return;
      continue;
    }
    if (bus->left_by_caller.load(std::memory_order_relaxed) != by_caller)
      bus->left_by_caller.store(by_caller, std::memory_order_relaxed);
    std::uint64_t expected = bus->held_word;
    if (bus->turn.compare_exchange_strong(expected, turn_word(bus->cursor, turn_scheduled),
                                          std::memory_order_seq_cst)) {
      submit_drain(bus);
      return;
    }
    if (!attend(bus)) {
      after_free(bus);
      return;
    }
  }
}

bool claim_with_turn(BusCore* bus, Leg* leg, bool& at_cursor) noexcept {
  skip_done(bus);
  at_cursor = bus->cursor == leg->ticket;
  if (!at_cursor) return claim_leg(leg);
  std::atomic<std::uintptr_t>* const slot = slot_at_cursor(bus);
  // A shared event's leg is known a moment before its slot is published: its emitter tells who jumps (look_for_legs).
  if (slot == nullptr || (slot->load(std::memory_order_seq_cst) & ~slot_bits) == 0 || !claim_slot(*slot)) return false;
  leg->state.store(LegState::claimed, std::memory_order_release);
  ++bus->cursor;
  return true;
}

void step_over(BusCore* bus, std::uint64_t ticket) noexcept {
  std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  while (turn_owner(word) == turn_free && (word & turn_attention) == 0 && turn_cursor(word) == ticket) {
    const std::uint64_t held = turn_word(ticket, turn_held);
    if (!bus->turn.compare_exchange_weak(word, held, std::memory_order_seq_cst)) continue;
    bus->held_word = held;
    bus->cursor = ticket;
    release_turn(bus);
    return;
  }
}

}  // namespace abxbus::detail

#include "bus/turn.hpp"

#include "bus/completion.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "event/burst.hpp"
#include "event/clock.hpp"
#include "event/hooks.hpp"

#include <algorithm>

namespace abxbus::detail {

namespace {

constexpr std::uint64_t owner(std::uint64_t word) {
  return word & turn_owner_mask;
}
constexpr std::uint64_t cursor_of(std::uint64_t word) {
  return word >> 3;
}
constexpr std::uint64_t make_word(std::uint64_t cursor, std::uint64_t flags) {
  return (cursor << 3) | flags;
}

/// A drain gives other buses a turn after so many events or so long.
constexpr int quantum_events = 64;
constexpr std::int64_t quantum_ns = 200'000;

/// Holder: the slot at the cursor. Keeps the segment pointer in step; null while the segment does not exist yet.
std::atomic<std::uintptr_t>* slot_at_cursor(BusCore* bus) noexcept {
  LogSegment* segment = bus->log.drain_segment;
  const std::uint64_t number = bus->cursor / segment_slots;
  if (segment == nullptr) {
    segment = bus->log.first();  // nothing can have gone before the cursor's first step
    if (segment == nullptr) return nullptr;
    bus->log.drain_segment = segment;
  }
  while (segment->number < number) {
    LogSegment* const next = segment->next.load(std::memory_order_acquire);
    if (next == nullptr) return nullptr;
    segment = next;
    bus->log.drain_segment = segment;
    bus->log.passed(segment->number, false);
  }
  return &segment->slots[bus->cursor % segment_slots];
}

bool published_at_cursor(BusCore* bus) noexcept {
  std::atomic<std::uintptr_t>* const slot = slot_at_cursor(bus);
  return slot != nullptr && (slot->load(std::memory_order_seq_cst) & ~slot_bits) != 0;
}

/// Holder: steps over slots whose leg is not the drain's: claimed by somebody else, or the lane's.
void skip_done(BusCore* bus) noexcept {
  for (;;) {
    std::atomic<std::uintptr_t>* const slot = slot_at_cursor(bus);
    if (slot == nullptr) return;
    const std::uintptr_t value = slot->load(std::memory_order_seq_cst);
    if ((value & ~slot_bits) == 0 || (value & (slot_spent | slot_lane)) == 0) return;
    ++bus->cursor;
  }
}

}  // namespace

void note_if_burst_over(BusCore* bus) noexcept {
  // Relaxed, and an exchange so that it is said once: a hint (event/burst.hpp).
  if (bus->in_burst.load(std::memory_order_relaxed) && bus->in_burst.exchange(false, std::memory_order_relaxed))
    note_burst_over();
}

namespace {

/// Drain: looks how much is queued, which is most when it begins.
void look_at_backlog(BusCore* bus) noexcept {
  constexpr std::uint64_t worth_a_sample = 64;
  const std::uint64_t queued = bus->log.issued() - bus->cursor;
  if (queued < worth_a_sample) return;
  bus->memory.sample_peak();
  if (queued >= burst_events) bus->in_burst.store(true, std::memory_order_relaxed);
}

}  // namespace

/// The turn's holder has given up a free turn: retired callables may go now.
static void after_free(BusCore* bus) noexcept {
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
  while (owner(word) == turn_free && (word & turn_attention) == 0 && cursor_of(word) == ticket) {
    if (bus->turn.compare_exchange_weak(word, make_word(ticket, turn_scheduled), std::memory_order_seq_cst)) {
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
  while (owner(word) != turn_held && (word & turn_attention) == 0) {
    const std::uint64_t held = make_word(cursor_of(word), turn_held);
    if (bus->turn.compare_exchange_weak(word, held, std::memory_order_seq_cst)) {
      bus->held_word = held;
      bus->cursor = cursor_of(word);
      return true;
    }
  }
  return false;
}

namespace {

/// HELD -> FREE, then look again. True: free (or somebody else goes on). False: work came and the turn is held again.
bool free_turn(BusCore* bus) noexcept {
  const std::uint64_t cursor = bus->cursor;
  std::uint64_t expected = bus->held_word;
  if (!bus->turn.compare_exchange_strong(expected, make_word(cursor, turn_free), std::memory_order_seq_cst))
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
  std::uint64_t expected = make_word(cursor, turn_free);
  const std::uint64_t held = make_word(cursor, turn_held);
  if (!bus->turn.compare_exchange_strong(expected, held, std::memory_order_seq_cst)) return false;
  bus->held_word = held;
  bus->cursor = cursor;
  return true;
}

/// Holder met ATTN. False: the turn has been given up.
bool attend(BusCore* bus) noexcept {
  const std::lock_guard lock(bus->domain->arbiter);
  if (bus->pause != 0 || bus->closing) {
    bus->turn.store(make_word(bus->cursor, turn_free | turn_attention), std::memory_order_seq_cst);
    put_off_grant(bus);
    return false;
  }
  const std::uint64_t held = make_word(bus->cursor, turn_held);
  bus->turn.store(held, std::memory_order_seq_cst);
  bus->held_word = held;
  return true;
}

/// Frees the turn if nothing waits at the cursor; true when it is free (or given up), false when held with work.
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

}  // namespace

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
    if (bus->turn.compare_exchange_strong(expected, make_word(bus->cursor, turn_scheduled),
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
  // A shared event's leg is known a moment before its slot is published: its emitter keeps the bit.
  if (slot == nullptr || (slot->load(std::memory_order_acquire) & ~slot_bits) == 0 || !claim_slot(*slot)) return false;
  leg->state.store(LegState::claimed, std::memory_order_release);
  ++bus->cursor;
  return true;
}

void step_over(BusCore* bus, std::uint64_t ticket) noexcept {
  std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  while (owner(word) == turn_free && (word & turn_attention) == 0 && cursor_of(word) == ticket) {
    const std::uint64_t held = make_word(ticket, turn_held);
    if (!bus->turn.compare_exchange_weak(word, held, std::memory_order_seq_cst)) continue;
    bus->held_word = held;
    bus->cursor = ticket;
    release_turn(bus);
    return;
  }
}

DrainLook look_at_drain(Job* job, DrainMemory& memory) noexcept {
  BusCore* const bus = static_cast<BusCore::BusJob*>(job)->bus;
  const std::uint64_t word = bus->turn.load(std::memory_order_relaxed);
  if ((word & turn_attention) != 0) return DrainLook::stalled;  // among others a destroyed bus: let go of it
  memory.scheduled = owner(word) == turn_scheduled;
  memory.left_by_caller = memory.scheduled && bus->left_by_caller.load(std::memory_order_relaxed);
  const std::uint64_t tail = bus->log.tail_word().load(std::memory_order_relaxed);
  const std::uint64_t before = std::exchange(memory.turn, word);
  const std::uint64_t tail_before = std::exchange(memory.tail, tail);
  if (owner(word) != turn_scheduled) return before == word ? DrainLook::nothing : DrainLook::progress;
  if (before != word) return DrainLook::progress;
  return tail_before == tail ? DrainLook::stalled : DrainLook::growing;
}

void drain(Job* job) noexcept {
  BusCore* const bus = static_cast<BusCore::BusJob*>(job)->bus;
  bus->drain_queued.store(false, std::memory_order_seq_cst);
  std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  bool taken = false;
  while (owner(word) == turn_scheduled && !taken) {
    if ((word & turn_attention) != 0) {
      const std::lock_guard lock(bus->domain->arbiter);
      word = bus->turn.load(std::memory_order_seq_cst);
      if (owner(word) != turn_scheduled || (word & turn_attention) == 0) continue;
      bus->turn.store(make_word(cursor_of(word), turn_free | turn_attention), std::memory_order_seq_cst);
      put_off_grant(bus);
      attention_over(bus);
      break;
    }
    taken = bus->turn.compare_exchange_weak(word, make_word(cursor_of(word), turn_held), std::memory_order_seq_cst);
  }
  if (!taken) {
    release_core(bus);
    return;
  }
  bus->held_word = make_word(cursor_of(word), turn_held);
  bus->cursor = cursor_of(word);
  if (bus->left_by_caller.load(std::memory_order_relaxed)) bus->left_by_caller.store(false, std::memory_order_relaxed);

  look_at_backlog(bus);
  int left = quantum_events;
  std::int64_t now = 0;  // last reading of this thread inside the library; 0: none
  std::int64_t quantum_start = 0;
  for (;;) {
    if ((bus->turn.load(std::memory_order_acquire) & turn_attention) != 0 && !attend(bus)) {
      after_free(bus);
      break;
    }
    skip_done(bus);
    std::atomic<std::uintptr_t>* const slot = slot_at_cursor(bus);
    const std::uintptr_t value = slot == nullptr ? 0 : slot->load(std::memory_order_acquire);
    if ((value & ~slot_bits) == 0) {
      if (release_if_dry(bus)) break;
      now = 0;
      continue;
    }
    // An odd event may need the global lock, which has to be there before the claim: look at its mode first.
    bool global = false;
    if ((value & slot_odd) != 0) {
      const ReaderGuard guard(bus->log);
      if ((slot->load(std::memory_order_seq_cst) & slot_spent) != 0) continue;
      global = resolve_concurrency(EventLog::leg_of(value)->record, bus) == EventConcurrency::global_serial;
    }
    if (global && !acquire_global_for_head(bus)) break;  // the turn is given up
    if (!global && bus->global_granted) give_back_grant(bus);
    if (!claim_slot(*slot)) {
      if (global) release_global(bus->domain.get());
      continue;  // somebody's now(), or destroy
    }
    ABXBUS_HOOK(drain_claimed);
    Leg* const leg = EventLog::leg_of(value);
    const EventConcurrency mode = resolve_concurrency(leg->record, bus);
    if (mode == EventConcurrency::global_serial && !global) {
      // Changed while it was queued: put it back, marked, and come again the other way.
      slot->fetch_or(slot_odd, std::memory_order_seq_cst);
      slot->fetch_and(~slot_spent, std::memory_order_seq_cst);
      // The walk of a destroy may have passed the slot meanwhile (Dekker destroyed, slot); the bit decides again.
      if (bus->destroyed.load(std::memory_order_seq_cst) && claim_slot(*slot)) drop_leg(leg);
      continue;
    }
    if (global && mode != EventConcurrency::global_serial) {
      release_global(bus->domain.get());
      global = false;
    }
    leg->state.store(LegState::claimed, std::memory_order_release);
    ++bus->cursor;
    if (mode == EventConcurrency::parallel) {
      start_parallel_run(leg);
      continue;
    }
    now = std::max(now == 0 ? now_ns() : now + 1, leg->record->created_at + 1);
    if (quantum_start == 0) quantum_start = now;
    Run* const run = start_run(leg, nullptr, true, now);
    run->holds_turn = true;
    run->holds_global = global;
    run->in_ticket_order = true;
    retain_run(run);
    const Outcome outcome = advance(run, true);
    if (outcome == Outcome::finished) now = run->finished_at;  // else it is the new baton holder's
    release_run(run);
    if (outcome == Outcome::left) break;
    if (--left <= 0 || now - quantum_start > quantum_ns) {
      left = quantum_events;
      quantum_start = now;
      look_at_backlog(bus);
      if (bus->pool->has_waiting_jobs()) {
        release_turn(bus);
        break;
      }
    }
  }
  release_core(bus);
}

// -- attention ------------------------------------------------------------------------------------------------------

std::uint64_t set_attention(BusCore* bus) noexcept {
  return owner(bus->turn.fetch_or(turn_attention, std::memory_order_seq_cst));
}

void attention_over(BusCore* bus) noexcept {
  if (bus->pause != 0 || bus->closing || bus->head_wait) return;
  const std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  if ((word & turn_attention) == 0 || owner(word) == turn_held) return;  // a holder clears it at its next step
  const std::uint64_t cursor = cursor_of(word);
  bus->turn.store(make_word(cursor, turn_free), std::memory_order_seq_cst);
  // Same pair as every release, with the ticket in place of the slot: free first, then look. A look at the slot would
  // need a ReaderGuard, whose end may free events, and the arbiter is held here.
  if (bus->log.issued() <= cursor) return;
  std::uint64_t expected = make_word(cursor, turn_free);
  if (bus->turn.compare_exchange_strong(expected, make_word(cursor, turn_scheduled), std::memory_order_seq_cst))
    submit_drain(bus);
}

void pause_bus(BusCore* bus) noexcept {
  const std::lock_guard lock(bus->domain->arbiter);
  ++bus->pause;
  set_attention(bus);
}

namespace {

/// Whether the leg of a published ticket has been claimed. Not under the arbiter: the guard's end may free events.
bool is_claimed(BusCore* bus, std::uint64_t ticket) noexcept {
  const ReaderGuard guard(bus->log);
  LogSegment* const segment = bus->log.find(ticket);
  return segment == nullptr || segment->number != ticket / segment_slots ||
         (segment->slots[ticket % segment_slots].load(std::memory_order_seq_cst) & slot_spent) != 0;
}

}  // namespace

void resume_bus(BusCore* bus) noexcept {
  std::unique_lock lock(bus->domain->arbiter);
  --bus->pause;
  if (bus->pause == 0 && bus->head_wait) {
    // A head that was claimed meanwhile waits for the global lock no more: a drain looks at the one behind it, which
    // may not need that lock at all.
    const std::uint64_t head = cursor_of(bus->turn.load(std::memory_order_seq_cst));
    lock.unlock();
    const bool gone = is_claimed(bus, head);
    lock.lock();
    if (gone && bus->pause == 0 && bus->head_wait && cursor_of(bus->turn.load(std::memory_order_seq_cst)) == head) {
      std::erase(bus->domain->global_waiters, bus);
      bus->head_wait = false;
    }
  }
  if (bus->pause == 0) grant_global(bus->domain.get());
  attention_over(bus);
}

// -- the global lock --------------------------------------------------------------------------------------------------

bool acquire_global_for_head(BusCore* bus) noexcept {
  DomainState* const domain = bus->domain.get();
  const std::lock_guard lock(domain->arbiter);
  if (bus->global_granted) {
    bus->global_granted = false;
    return true;
  }
  if (domain->global_holder == nullptr && domain->global_waiters.empty()) {
    domain->global_holder = bus;
    return true;
  }
  // The drain does not keep the turn while it waits; the leg stays queued, so now() may take it.
  bus->turn.store(make_word(bus->cursor, turn_free | turn_attention), std::memory_order_seq_cst);
  if (bus->closing) return false;
  domain->global_waiters.push_back(bus);
  bus->head_wait = true;
  grant_global(domain);
  return false;
}

void grant_global(DomainState* domain) noexcept {
  while (domain->global_holder == nullptr) {
    // First in arrival order whose bus is ready; one made unready by a pause keeps its place.
    const auto ready = std::find_if(domain->global_waiters.begin(), domain->global_waiters.end(), [](BusCore* each) {
      return each->pause == 0 && owner(each->turn.load(std::memory_order_seq_cst)) == turn_free;
    });
    if (ready == domain->global_waiters.end()) return;
    BusCore* const bus = *ready;
    domain->global_waiters.erase(ready);
    bus->head_wait = false;
    domain->global_holder = bus;
    bus->global_granted = true;
    const std::uint64_t cursor = cursor_of(bus->turn.load(std::memory_order_seq_cst));
    bus->turn.store(make_word(cursor, turn_scheduled), std::memory_order_seq_cst);
    submit_drain(bus);
  }
}

void put_off_grant(BusCore* bus) noexcept {
  if (!bus->global_granted) return;
  bus->global_granted = false;
  if (!bus->closing) {
    bus->domain->global_waiters.push_front(bus);
    bus->head_wait = true;
  }
  bus->domain->global_holder = nullptr;
  grant_global(bus->domain.get());
}

void close_turn(BusCore* bus) noexcept {
  DomainState* const domain = bus->domain.get();
  const std::lock_guard lock(domain->arbiter);
  bus->closing = true;
  // The waiters' list holds no references: a bus leaves it before its owner can go.
  std::erase(domain->global_waiters, bus);
  bus->head_wait = false;
  // A holder meets the mark and gives back what is reserved itself.
  if (set_attention(bus) != turn_held) put_off_grant(bus);
}

void give_back_grant(BusCore* bus) noexcept {
  {
    const std::lock_guard lock(bus->domain->arbiter);
    if (!bus->global_granted) return;
    bus->global_granted = false;
  }
  release_global(bus->domain.get());
}

bool try_global_for_jump(BusCore* bus, bool has_turn) noexcept {
  DomainState* const domain = bus->domain.get();
  const std::lock_guard lock(domain->arbiter);
  if (has_turn && bus->global_granted) {  // reserved for the head, which is this event or comes after it
    bus->global_granted = false;
    return true;
  }
  if (domain->global_holder != nullptr) return false;
  domain->global_holder = bus;
  return true;
}

void release_global(DomainState* domain) noexcept {
  const std::lock_guard lock(domain->arbiter);
  domain->global_holder = nullptr;
  grant_global(domain);
}

// -- the lane ---------------------------------------------------------------------------------------------------------

namespace {
constexpr std::uint64_t lane_held = 1;
}

void advance_lane(BusCore* bus, std::uint64_t ticket) noexcept {
  EventLog& log = bus->log;
  std::uint64_t word = bus->lane.load(std::memory_order_seq_cst);
  // Held: the holder looks at the slot again after it has freed the lane (Dekker slot, lane). Free at another ticket
  // than this one: the emitter of that ticket comes here.
  while ((word & lane_held) == 0 && (word >> 1) <= ticket) {
    if (!bus->lane.compare_exchange_weak(word, word | lane_held, std::memory_order_seq_cst)) continue;
    std::uint64_t cursor = word >> 1;
    for (;;) {
      std::atomic<std::uintptr_t>* slot = nullptr;
      {
        LogSegment* segment = log.lane_segment;
        if (segment == nullptr) {
          // First use: everything older than the oldest segment has been drained; the lane keeps segments from now on.
          segment = log.start_lane();
          if (segment != nullptr) cursor = std::max(cursor, segment->number * segment_slots);
        }
        while (segment != nullptr && segment->number < cursor / segment_slots) {
          segment = segment->next.load(std::memory_order_acquire);
          if (segment != nullptr) {
            log.lane_segment = segment;
            log.passed(segment->number, true);
          }
        }
        if (segment != nullptr) slot = &segment->slots[cursor % segment_slots];
      }
      const std::uintptr_t value = slot == nullptr ? 0 : slot->load(std::memory_order_seq_cst);
      if ((value & ~slot_bits) == 0) break;
      if ((value & slot_lane) != 0 && claim_slot(*slot)) {
        Leg* const leg = EventLog::leg_of(value);
        leg->state.store(LegState::claimed, std::memory_order_release);
        start_parallel_run(leg);
      }
      ++cursor;
    }
    bus->lane.store(cursor << 1, std::memory_order_seq_cst);
    word = cursor << 1;
    // Published between the last look and the store?
    const ReaderGuard guard(log);
    LogSegment* const segment = log.find(cursor);
    if (segment == nullptr || segment->number != cursor / segment_slots) return;
    if ((segment->slots[cursor % segment_slots].load(std::memory_order_seq_cst) & ~slot_bits) == 0) return;
    ticket = cursor;
  }
}

}  // namespace abxbus::detail

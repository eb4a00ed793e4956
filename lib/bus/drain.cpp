#include "bus/completion.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "bus/turn.hpp"
#include "bus/turn_word.hpp"
#include "event/burst.hpp"
#include "event/clock.hpp"
#include "event/hooks.hpp"

#include <algorithm>
#include <utility>

/// The drain job: takes a bus's turn and runs what is queued, one event after the other.
namespace abxbus::detail {

namespace {

/// A drain gives other buses a turn after so many events or so long.
constexpr int quantum_events = 64;
constexpr std::int64_t quantum_ns = 200'000;

/// Drain: looks how much is queued, which is most when it begins.
void look_at_backlog(BusCore* bus) noexcept {
  constexpr std::uint64_t worth_a_sample = 64;
  const std::uint64_t queued = bus->log.issued() - bus->cursor;
  if (queued < worth_a_sample) return;
  bus->memory.sample_peak();
  if (queued >= burst_events) bus->in_burst.store(true, std::memory_order_relaxed);
}

}  // namespace

DrainLook look_at_drain(Job* job, DrainMemory& memory) noexcept {
  BusCore* const bus = static_cast<BusCore::BusJob*>(job)->bus;
  const std::uint64_t word = bus->turn.load(std::memory_order_relaxed);
  if ((word & turn_attention) != 0) {
    memory.scheduled = memory.left_by_caller = false;
    return DrainLook::closed;
  }
  memory.scheduled = turn_owner(word) == turn_scheduled;
  memory.left_by_caller = memory.scheduled && bus->left_by_caller.load(std::memory_order_relaxed);
  const std::uint64_t tail = bus->log.tail_word().load(std::memory_order_relaxed);
  const std::uint64_t before = std::exchange(memory.turn, word);
  const std::uint64_t tail_before = std::exchange(memory.tail, tail);
  if (turn_owner(word) != turn_scheduled) return before == word ? DrainLook::nothing : DrainLook::progress;
  if (before != word) return DrainLook::progress;
  return tail_before == tail ? DrainLook::stalled : DrainLook::growing;
}

namespace {

/// The drain job is in somebody's hands: the next who schedules the bus submits it anew. Takes a scheduled turn if
/// `take`; one that meets attention is freed for whoever has it. Returns whether the turn is scheduled still or taken.
bool begin_drain(BusCore* bus, bool take) noexcept {
  bus->drain_queued.store(false, std::memory_order_seq_cst);
  std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  while (turn_owner(word) == turn_scheduled) {
    if ((word & turn_attention) != 0) {
      const std::lock_guard lock(bus->domain->arbiter);
      word = bus->turn.load(std::memory_order_seq_cst);
      if (turn_owner(word) != turn_scheduled || (word & turn_attention) == 0) continue;
      bus->turn.store(turn_word(turn_cursor(word), turn_free | turn_attention), std::memory_order_seq_cst);
      put_off_grant(bus);
      attention_over(bus);
      return false;
    }
    if (!take) return true;
    const std::uint64_t held = turn_word(turn_cursor(word), turn_held);
    if (!bus->turn.compare_exchange_weak(word, held, std::memory_order_seq_cst)) continue;
    bus->held_word = held;
    bus->cursor = turn_cursor(held);
    return true;
  }
  return false;
}

}  // namespace

void let_go_of_drain(Job* job) noexcept {
  BusCore* const bus = static_cast<BusCore::BusJob*>(job)->bus;
  if (begin_drain(bus, false)) submit_drain(bus);
  release_core(bus);
}

void drain(Job* job) noexcept {
  BusCore* const bus = static_cast<BusCore::BusJob*>(job)->bus;
  if (!begin_drain(bus, true)) {
    release_core(bus);
    return;
  }
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
      const RecordPtr keep = RecordPtr::share(leg->record);
      slot->fetch_or(slot_odd, std::memory_order_seq_cst);
      slot->fetch_and(~slot_spent, std::memory_order_seq_cst);
      look_for_legs(leg->record);  // a now() may have met the claim and taken the leg for started
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

}  // namespace abxbus::detail

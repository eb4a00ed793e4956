#include "bus/emit.hpp"

#include "bus/cancel.hpp"
#include "bus/completion.hpp"
#include "bus/history.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "bus/turn.hpp"
#include "bus/waiting.hpp"
#include "event/burst.hpp"
#include "event/futex.hpp"
#include "event/hooks.hpp"
#include "event/process.hpp"

#include <abxbus/error.hpp>

#include <new>
#include <thread>

/// Accepting an event: ticket, leg, publication, wake-up. Everything that can throw happens before the ticket.
namespace abxbus::detail {

bool caller_is_stale() noexcept {
  return current_frame != nullptr && current_frame->stale();
}

namespace {

/// The critical section of emitting one event object from several places: who finds a half-accepted leg of its own bus
/// must wait for the verdict. No user code, no wait inside.
class Accepting {
 public:
  explicit Accepting(Record* record) noexcept : record_(record) {
    int spins = 0;
    while ((record_->flags.fetch_or(flag_accepting | flag_shared, std::memory_order_acquire) & flag_accepting) != 0) {
      if (++spins < 64) {
        cpu_pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  ~Accepting() { record_->flags.fetch_and(~flag_accepting, std::memory_order_release); }
  Accepting(const Accepting&) = delete;
  Accepting& operator=(const Accepting&) = delete;

 private:
  Record* record_;
};

[[noreturn]] void throw_full(const BusCore* bus, const Record* record, std::uint64_t size, std::uint64_t limit) {
  throw EventBusHistoryLimitError(bus->label, type_name_of(record), static_cast<std::size_t>(size),
                                  static_cast<std::size_t>(limit));
}

/// Ticket, limit and destroy in one step. Exact in reject mode: the order of the two loads below means that at a
/// rejection the history was full when `removed` was read, and at a success it was not when the ticket was taken.
std::uint64_t take_ticket(BusCore* bus, const Record* record) {
  std::atomic<std::uint64_t>& tail = bus->log.tail_word();
  const std::uint64_t limit = bus->max_history.load(std::memory_order_relaxed);
  if (limit == history_unlimited || limit == 0 || bus->history_drop.load(std::memory_order_relaxed)) {
    const std::uint64_t ticket = tail.fetch_add(1, std::memory_order_seq_cst);
    if ((ticket & log_closed) != 0) throw_destroyed(bus, "emit");
    return ticket;
  }
  std::uint64_t ticket = tail.load(std::memory_order_acquire);
  for (;;) {
    if ((ticket & log_closed) != 0) throw_destroyed(bus, "emit");
    const std::uint64_t removed = bus->log.removed().load(std::memory_order_acquire);
    if (ticket - removed >= limit) throw_full(bus, record, ticket - removed, limit);
    if (tail.compare_exchange_weak(ticket, ticket + 1, std::memory_order_seq_cst)) return ticket;
  }
}

/// What publishing a leg leaves for afterwards.
struct Published {
  std::atomic<std::uintptr_t>* slot = nullptr;
  std::uintptr_t before = 0;  ///< the slot's value
  bool lane = false;
  bool side = false;
};

/// From the ticket on nothing can fail. Puts the leg into its slot: the event is queued, or on the lane, or, on a bus
/// that comes too late (`side`), in the history only.
Published fill_slot(BusCore* bus, Leg* leg, std::uint64_t ticket, bool lane, bool side, bool odd) noexcept {
  if (lane && !bus->log.lane_used.load(std::memory_order_seq_cst))
    bus->log.lane_used.store(true, std::memory_order_seq_cst);
  if ((lane || side) && bus->in_order.load(std::memory_order_relaxed)) bus->log.leave_ticket_order(bus->in_order);
  std::uintptr_t bits = 0;
  if (side) bits |= slot_spent;
  if (lane) bits |= slot_lane;
  if (odd) bits |= slot_odd;
  ABXBUS_HOOK(emit_ticket_taken);
  std::atomic<std::uintptr_t>& slot = bus->log.own_slot(ticket);
  const std::uintptr_t before = slot.fetch_or(reinterpret_cast<std::uintptr_t>(leg) | bits, std::memory_order_seq_cst);
  return {&slot, before, lane, side};
}

/// What follows the publication: may run user code (predicates of finders, destructors of evicted payloads and of
/// removed handlers), so no lock of the record may be held.
void after_publication(BusCore* bus, Leg* leg, std::uint64_t ticket, const Published& published) noexcept {
  const auto& [slot, before, lane, side] = published;
  Record* const record = leg->record;
  ABXBUS_HOOK(emit_published);
  if ((before & slot_unlisted) != 0) bus->log.forget(leg);  // evicted while it was still on its way
  if (bus->destroyed.load(std::memory_order_seq_cst)) [[unlikely]] {
    // The walk of destroy may have passed this slot before it was published; the bit decides who drops the leg.
    if (side) {
      bus->log.over(leg);
    } else if (claim_slot(*slot)) {
      drop_leg(leg);
    }
    return;
  }
  if (bus->find_waiters.load(std::memory_order_seq_cst) != 0) offer_to_finders(bus, record, ticket);
  if (side) {
    bus->done_side.fetch_add(1, std::memory_order_seq_cst);
    if (bus->idle_waiters.load(std::memory_order_seq_cst) != 0) notify_idle(bus);
    bus->log.over(leg);
  }
  if (bus->log.lane_used.load(std::memory_order_seq_cst)) advance_lane(bus, ticket);
  if (lane || side) {
    step_over(bus, ticket);
  } else {
    wake_after_publish(bus, ticket);
  }
  make_room(bus, ticket);
}

EventConcurrency mode_for_accept(const Record* record, const BusCore* bus, bool& odd) noexcept {
  const std::optional<EventConcurrency>& own = option_fields(record).event_concurrency;
  const EventConcurrency mode = own.value_or(bus->options.event_concurrency);
  odd = (own.has_value() || bus->options.event_concurrency != EventConcurrency::bus_serial) &&
        mode != EventConcurrency::parallel;
  return mode;
}

void attach_first(BusCore* bus, Record* record, std::uint64_t ticket) noexcept {
  Leg& leg = record->first_leg;
  leg.bus = bus;
  leg.ticket = ticket;
  record->last_leg = &leg;
  record->account_bus = bus;
  bus->memory.charge(record->charged, 1);
  record->leg_count.store(1, std::memory_order_release);
}

}  // namespace

RecordPtr emit_fresh(BusCore* bus, RecordPtr event) {
  Record* const record = as_record(event.get());
  if (bus->born != process_generation.load(std::memory_order_relaxed) || bus->log.closed()) [[unlikely]]
    throw_destroyed(bus, "emit");
  if (caller_is_stale()) return event;
  give_back_burst();
  bus->log.reserve(bus->log.tail_word().load(std::memory_order_relaxed));
  bool odd = false;
  const EventConcurrency mode = mode_for_accept(record, bus, odd);
  const std::uint64_t ticket = take_ticket(bus, record);
  // Nobody else knows the record yet: plain stores. One reference for the handle, one for the bus.
  record->refs.store(2, std::memory_order_relaxed);
  record->holds.store(1, std::memory_order_relaxed);
  attach_first(bus, record, ticket);
  const bool lane = mode == EventConcurrency::parallel;
  after_publication(bus, &record->first_leg, ticket, fill_slot(bus, &record->first_leg, ticket, lane, false, odd));
  return event;
}

RecordPtr emit_record(BusCore* bus, RecordPtr event) {
  Record* const record = as_record(event.get());
  if (record == nullptr) throw ValidationError("event must not be an empty handle", "event");
  require_live(bus, "emit");
  if (caller_is_stale()) return event;
  Leg* leg = &record->first_leg;
  std::uint64_t ticket = 0;
  Published published;
  {
    const Accepting accepting(record);
    const std::uint32_t legs = record->leg_count.load(std::memory_order_acquire);
    if (legs != 0)
      for (Leg* each = &record->first_leg; each != nullptr; each = each->next.load(std::memory_order_acquire))
        if (each->bus == bus) return event;  // already in its path: no effect at all (S-EMIT-7)
    bus->log.reserve(bus->log.tail_word().load(std::memory_order_relaxed));
    if (legs != 0) {
      leg = ::new (allocate(sizeof(Leg))) Leg;
      leg->record = record;
    }
    try {
      ticket = take_ticket(bus, record);
    } catch (...) {
      if (legs != 0) {
        leg->~Leg();
        deallocate(leg);
      }
      throw;
    }
    bool odd = false;
    const EventConcurrency mode = mode_for_accept(record, bus, odd);
    // Completed elsewhere (or completing at this moment: nothing raises the holds from 0): history only (S-EMIT-12).
    std::uint32_t holds = record->holds.load(std::memory_order_acquire);
    bool side = false;
    do {
      side = legs != 0 && holds == 0;
    } while (!side && !record->holds.compare_exchange_weak(holds, holds + 1, std::memory_order_acq_rel));
    retain(record);
    if (side) leg->state.store(LegState::side, std::memory_order_relaxed);
    if (legs == 0) {
      attach_first(bus, record, ticket);
    } else {
      leg->bus = bus;
      leg->ticket = ticket;
      bus->memory.charge(static_cast<std::int64_t>(usable_bytes(leg)), 1);
      record->last_leg->next.store(leg, std::memory_order_release);
      record->last_leg = leg;
      record->leg_count.store(legs + 1, std::memory_order_release);
    }
    published = fill_slot(bus, leg, ticket, mode == EventConcurrency::parallel && !side, side, odd);
  }
  after_publication(bus, leg, ticket, published);
  look_for_legs(record);
  if (leg != &record->first_leg) cancel_late_leg(leg);
  return event;
}

void remember(BusCore* bus, RecordPtr event) {
  bus->log.reserve(bus->log.tail_word().load(std::memory_order_relaxed));
  void* const memory = allocate(sizeof(Leg));
  const std::uint64_t ticket = bus->log.tail_word().fetch_add(1, std::memory_order_seq_cst);
  if ((ticket & log_closed) != 0) {  // destroyed: there is no history any more
    deallocate(memory);
    return;
  }
  bus->log.leave_ticket_order(bus->in_order);
  auto* const leg = ::new (memory) Leg;
  leg->bus = bus;
  leg->record = as_record(event.get());
  leg->ticket = ticket;
  leg->remembered = true;
  leg->state.store(LegState::side, std::memory_order_relaxed);
  leg->disposal.store(leg_over, std::memory_order_relaxed);  // no queue is interested in it
  retain(leg->record);
  bus->memory.charge(static_cast<std::int64_t>(usable_bytes(memory)), 1);
  std::atomic<std::uintptr_t>& slot = bus->log.own_slot(ticket);
  const std::uintptr_t before =
      slot.fetch_or(reinterpret_cast<std::uintptr_t>(leg) | slot_spent, std::memory_order_seq_cst);
  if ((before & slot_unlisted) != 0) bus->log.forget(leg);  // the history was cleared meanwhile
  bus->done_side.fetch_add(1, std::memory_order_seq_cst);
  if (bus->idle_waiters.load(std::memory_order_seq_cst) != 0) notify_idle(bus);
  if (bus->log.lane_used.load(std::memory_order_seq_cst)) advance_lane(bus, ticket);
  step_over(bus, ticket);
}

namespace {

/// Lineage of a child, taken back when the emit is rejected (H-HIST-11).
class ChildLink {
 public:
  ChildLink(Record* parent, Record* child, const ExecFrame* emitter) : parent_(parent), child_(child) {
    RareData& mine = rare_of(child);
    RareData* const theirs = emitter != nullptr ? &rare_of(parent) : nullptr;
    const std::lock_guard lock(mine.mutex);
    if (mine.emitter != nullptr || mine.parent != nullptr) return;  // linked before
    linked_ = true;
    if (!mine.parent_id) {
      mine.parent_id = event_id_of(parent);
      set_id_ = true;
    }
    if (emitter == nullptr) return;
    retain_entry(emitter->result->entry);
    mine.emitter = emitter->result->entry;
    mine.emitter_run = emitter->result;
    if (*mine.parent_id == event_id_of(parent)) {
      retain(parent);
      mine.parent = parent;
    }
    const std::lock_guard parent_lock(theirs->mutex);
    theirs->children.push_back({RecordPtr::share(child), emitter->result});
    listed_ = true;
  }
  ~ChildLink() {
    if (!linked_ || kept_) return;
    RareData& mine = *child_->rare.load(std::memory_order_acquire);
    Record* parent = nullptr;
    Entry* entry = nullptr;
    {
      const std::lock_guard lock(mine.mutex);
      if (set_id_) mine.parent_id.reset();
      parent = std::exchange(mine.parent, nullptr);
      entry = std::exchange(mine.emitter, nullptr);
      mine.emitter_run = nullptr;
    }
    if (listed_) {
      RareData& theirs = *parent_->rare.load(std::memory_order_acquire);
      RecordPtr removed;
      const std::lock_guard lock(theirs.mutex);
      for (auto each = theirs.children.rbegin(); each != theirs.children.rend(); ++each) {
        if (each->record.get() != child_) continue;
        removed = std::move(each->record);
        theirs.children.erase(std::next(each).base());
        break;
      }
    }
    if (entry != nullptr) release_entry(entry);
    if (parent != nullptr) release_record(parent);
  }
  void keep() noexcept { kept_ = true; }
  ChildLink(const ChildLink&) = delete;
  ChildLink& operator=(const ChildLink&) = delete;

 private:
  Record* parent_;
  Record* child_;
  bool linked_ = false, set_id_ = false, listed_ = false, kept_ = false;
};

}  // namespace

RecordPtr emit_child(RecordHead* parent_head, RecordPtr child) {
  Record* const parent = as_record(parent_head);
  if (child.get() == nullptr) throw ValidationError("event must not be an empty handle", "event");
  const ExecFrame* frame = current_frame;
  if (frame != nullptr && frame->record != parent) frame = nullptr;
  if (!parent->accepted()) throw ValidationError("event has no bus attached", "event");
  BusCore* const bus = frame != nullptr ? frame->bus : parent->first_leg.bus;
  if (child.get() == parent_head || as_record(child.get())->accepted()) return emit_record(bus, std::move(child));
  require_live(bus, "emit");
  if (caller_is_stale()) return child;
  ChildLink link(parent, as_record(child.get()), frame);
  RecordPtr result = emit_record(bus, std::move(child));
  // Not accepted after all (the handler was cut short meanwhile): a child that never completes would keep its parent.
  if (!as_record(result.get())->accepted()) return result;
  link.keep();
  if (frame != nullptr && (result.get()->flags.load(std::memory_order_relaxed) & flag_blocking) != 0)
    make_blocking_unless_stale(as_record(result.get()));
  return result;
}

}  // namespace abxbus::detail

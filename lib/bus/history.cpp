#include "bus/history.hpp"

#include "bus/completion.hpp"
#include "event/log.hpp"

#include <algorithm>

namespace abxbus::detail {

namespace {

void warn_dropping(BusCore* bus, std::uint64_t limit) noexcept {
  if (bus->drop_warned.exchange(true, std::memory_order_relaxed)) return;
  log(LogLevel::warning, "[abxbus] ⚠️ Bus " + bus->label +
                             " has exceeded max_history_size=" + std::to_string(limit) +
                             " and is dropping oldest history entries (even uncompleted events). Increase "
                             "max_history_size or set max_history_drop=false to reject.");
}

/// Unlists a slot that the caller knows to exist. True: this call did it. `limit`: warn once if the event was not
/// completed; 0: nobody asks.
bool unlist_slot(BusCore* bus, std::atomic<std::uintptr_t>& slot, std::uint64_t limit = 0) noexcept {
  const std::uintptr_t before = slot.fetch_or(slot_unlisted, std::memory_order_seq_cst);
  if ((before & slot_unlisted) != 0) return false;
  bus->log.removed().fetch_add(1, std::memory_order_acq_rel);
  // The leg is ours to forget, so its event is there until then. None: its emitter finds the bit and forgets it itself.
  Leg* const leg = EventLog::leg_of(before);
  if (limit != 0 && (leg == nullptr || !leg->record->completed())) warn_dropping(bus, limit);
  if (leg != nullptr) bus->log.forget(leg);
  return true;
}

std::uint64_t size_of(const BusCore* bus) noexcept {
  const std::uint64_t removed = bus->log.issued();
  const std::uint64_t gone = const_cast<BusCore*>(bus)->log.removed().load(std::memory_order_acquire);
  return removed > gone ? removed - gone : 0;
}

}  // namespace

std::uint64_t history_size(const BusCore* bus) noexcept {
  return size_of(bus);
}

void make_room(BusCore* bus, std::uint64_t ticket) noexcept {
  // Acquire: a limit that was set later comes with `in_order` cleared.
  const std::uint64_t limit = bus->max_history.load(std::memory_order_acquire);
  if (limit == history_unlimited) return;
  if (limit == 0) {
    if (bus->zero_prune_pending.load(std::memory_order_relaxed) &&
        bus->zero_prune_pending.exchange(false, std::memory_order_acq_rel))
      trim(bus, 0, nullptr);
    return;
  }
  if (!bus->history_drop.load(std::memory_order_relaxed)) return;
  if (bus->in_order.load(std::memory_order_seq_cst)) {
    // Completions have been in ticket order, so whatever is completed in the window is its oldest part: the entry to
    // evict is t - N, completed or not, and this emit alone is responsible for it.
    if (ticket < limit) return;
    if (std::atomic<std::uintptr_t>* const slot = bus->log.listed_slot(ticket - limit))
      unlist_slot(bus, *slot, bus->drop_warned.load(std::memory_order_relaxed) ? 0 : limit);
    return;
  }
  if (size_of(bus) > std::max(limit, limit + limit / 5)) trim(bus, limit, nullptr);
}

void before_completion(Leg* leg) noexcept {
  if (leg->bus->max_history.load(std::memory_order_relaxed) == 0) unlist(leg->bus, leg->ticket);
}

void after_completion(Leg* leg) noexcept {
  BusCore* const bus = leg->bus;
  const std::uint64_t limit = bus->max_history.load(std::memory_order_relaxed);
  if (limit == history_unlimited || limit == 0 || bus->in_order.load(std::memory_order_relaxed)) return;
  if (bus->history_drop.load(std::memory_order_relaxed) && size_of(bus) > limit) trim(bus, limit, nullptr);
}

bool unlist(BusCore* bus, std::uint64_t ticket) noexcept {
  const ReaderGuard guard(bus->log);
  LogSegment* const segment = bus->log.find(ticket);
  if (segment == nullptr || segment->number != ticket / segment_slots) return false;
  return unlist_slot(bus, segment->slots[ticket % segment_slots]);
}

namespace {

/// Slot of the listed event with that id; only under a ReaderGuard.
std::atomic<std::uintptr_t>* find_listed(BusCore* bus, const Uuid& id) noexcept {
  for (LogSegment* segment = bus->log.first(); segment != nullptr;
       segment = segment->next.load(std::memory_order_acquire)) {
    for (auto& slot : segment->slots) {
      const std::uintptr_t value = slot.load(std::memory_order_seq_cst);
      const Leg* const leg = EventLog::leg_of(value);
      if (leg != nullptr && (value & slot_unlisted) == 0 && event_id_of(leg->record) == id) return &slot;
    }
  }
  return nullptr;
}

}  // namespace

bool unlist(BusCore* bus, const Uuid& id) noexcept {
  bus->log.leave_ticket_order(bus->in_order);
  bool removed = false;
  {
    const ReaderGuard guard(bus->log);
    std::atomic<std::uintptr_t>* const slot = find_listed(bus, id);
    removed = slot != nullptr && unlist_slot(bus, *slot);
  }
  bus->log.release_segments();
  return removed;
}

bool replace_listed(BusCore* bus, const RecordPtr& event) {
  Record* const record = as_record(event.get());
  void* const memory = allocate(sizeof(Leg));
  const ReaderGuard guard(bus->log);
  std::atomic<std::uintptr_t>* const slot = find_listed(bus, event_id_of(record));
  std::uintptr_t value = slot != nullptr ? slot->load(std::memory_order_seq_cst) : 0;
  Leg* const before = EventLog::leg_of(value);
  const bool listed = before != nullptr && (value & slot_unlisted) == 0;
  if (!listed || before->record == record || (value & slot_spent) == 0) {
    deallocate(memory);
    return listed && before->record == record;
  }
  auto* const leg = ::new (memory) Leg;
  leg->bus = bus;
  leg->record = record;
  leg->ticket = before->ticket;
  leg->remembered = true;
  leg->state.store(LegState::side, std::memory_order_relaxed);
  leg->disposal.store(leg_over, std::memory_order_relaxed);
  const std::uintptr_t after = reinterpret_cast<std::uintptr_t>(leg) | (value & slot_bits);
  if (!slot->compare_exchange_strong(value, after, std::memory_order_seq_cst)) {  // removed at this moment
    leg->~Leg();
    deallocate(memory);
    return false;
  }
  retain(record);
  bus->memory.charge(static_cast<std::int64_t>(usable_bytes(memory)), 1);
  bus->log.forget(before);
  return true;
}

std::size_t trim(BusCore* bus, std::uint64_t limit, const std::function<void(const BaseEvent&)>* on_remove) noexcept {
  std::vector<RecordPtr> removed;
  std::size_t count = 0;
  bool dropped_open = false;
  {
    // The guard outlives the lock: its end may free events, and with them values of the user's.
    const ReaderGuard guard(bus->log);
    const std::lock_guard lock(bus->trim_mutex);
    const std::uint64_t tail = bus->log.issued();
    LogSegment* segment = nullptr;
    const auto slot_of = [&](std::uint64_t ticket) -> std::atomic<std::uintptr_t>* {
      const std::uint64_t number = ticket / segment_slots;
      if (segment == nullptr || segment->number != number) segment = bus->log.find(ticket);
      return segment != nullptr && segment->number == number ? &segment->slots[ticket % segment_slots] : nullptr;
    };
    const auto take = [&](std::atomic<std::uintptr_t>& slot) {
      const std::uintptr_t value = slot.load(std::memory_order_seq_cst);
      if (on_remove != nullptr && (value & slot_unlisted) == 0)
        if (const Leg* leg = EventLog::leg_of(value)) removed.push_back(RecordPtr::share(leg->record));
      if (unlist_slot(bus, slot)) ++count;
    };
    const auto is_done = [](std::uintptr_t value) {
      const Leg* leg = EventLog::leg_of(value);
      return leg != nullptr && leg->record->completed();
    };
    const auto over = [&] { return limit == 0 || size_of(bus) > limit; };

    // Entries that were not completed when they were scanned; at most the limit and what came since.
    std::vector<std::uint64_t>& open = bus->trim_open;
    std::vector<std::uint64_t> still_open;
    for (const std::uint64_t ticket : open) {
      std::atomic<std::uintptr_t>* const slot = slot_of(ticket);
      if (slot == nullptr) continue;
      const std::uintptr_t value = slot->load(std::memory_order_seq_cst);
      if ((value & slot_unlisted) != 0) continue;
      if (over() && is_done(value)) {
        take(*slot);
      } else {
        still_open.push_back(ticket);
      }
    }
    std::uint64_t& scan = bus->trim_scan;
    if (const LogSegment* first = bus->log.first()) scan = std::max(scan, first->number * segment_slots);
    while (scan < tail && over()) {
      std::atomic<std::uintptr_t>* const slot = slot_of(scan);
      if (slot != nullptr) {
        const std::uintptr_t value = slot->load(std::memory_order_seq_cst);
        if ((value & slot_unlisted) == 0) {
          if (is_done(value)) {
            take(*slot);
          } else {
            still_open.push_back(scan);
          }
        }
      }
      ++scan;
    }
    if (limit != 0) {
      std::size_t oldest = 0;
      while (over() && oldest < still_open.size() && still_open[oldest] + 1 < tail) {
        if (std::atomic<std::uintptr_t>* const slot = slot_of(still_open[oldest])) {
          dropped_open = true;
          take(*slot);
        }
        ++oldest;
      }
      still_open.erase(still_open.begin(), still_open.begin() + static_cast<std::ptrdiff_t>(oldest));
    }
    open = std::move(still_open);
  }
  if (dropped_open) warn_dropping(bus, limit);
  if (on_remove != nullptr)
    for (RecordPtr& record : removed) (*on_remove)(BaseEvent(std::move(record)));
  bus->log.release_segments();
  return count;
}

void clear_history(BusCore* bus) noexcept {
  bus->log.leave_ticket_order(bus->in_order);
  {
    const ReaderGuard guard(bus->log);
    const std::uint64_t tail = bus->log.issued();
    for (LogSegment* segment = bus->log.first(); segment != nullptr;
         segment = segment->next.load(std::memory_order_acquire)) {
      for (std::uint64_t i = 0; i < segment_slots && segment->number * segment_slots + i < tail; ++i)
        unlist_slot(bus, segment->slots[i]);
    }
  }
  bus->log.release_segments();
}

std::vector<RecordPtr> listed_events(BusCore* bus) {
  std::vector<RecordPtr> events;
  const ReaderGuard guard(bus->log);
  for (LogSegment* segment = bus->log.first(); segment != nullptr;
       segment = segment->next.load(std::memory_order_acquire)) {
    for (auto& slot : segment->slots) {
      const std::uintptr_t value = slot.load(std::memory_order_seq_cst);
      Leg* const leg = EventLog::leg_of(value);
      if (leg == nullptr || (value & slot_unlisted) != 0) continue;
      if (try_retain(leg->record)) events.emplace_back(static_cast<RecordHead*>(leg->record));
    }
  }
  return events;
}

RecordPtr newest_first(BusCore* bus, std::uint64_t below, const std::function<bool(Record*)>& visit) {
  constexpr std::size_t batch = 64;
  std::uint64_t ticket = below;
  for (;;) {
    std::vector<RecordPtr> seen;
    {
      const ReaderGuard guard(bus->log);
      const LogSegment* const first = bus->log.first();
      if (first == nullptr) return {};
      const std::uint64_t oldest = first->number * segment_slots;
      LogSegment* segment = nullptr;
      while (ticket > oldest && seen.size() < batch) {
        --ticket;
        if (segment == nullptr || segment->number != ticket / segment_slots) segment = bus->log.find(ticket);
        if (segment == nullptr || segment->number != ticket / segment_slots) continue;
        const std::uintptr_t value = segment->slots[ticket % segment_slots].load(std::memory_order_seq_cst);
        Leg* const leg = EventLog::leg_of(value);
        if (leg == nullptr || (value & slot_unlisted) != 0) continue;
        if (try_retain(leg->record)) seen.emplace_back(static_cast<RecordHead*>(leg->record));
      }
      if (seen.empty()) return {};
    }
    for (RecordPtr& record : seen)
      if (visit(as_record(record.get()))) return std::move(record);
  }
}

}  // namespace abxbus::detail

#include "bus/run.hpp"

#include "bus/cancel.hpp"
#include "bus/completion.hpp"
#include "bus/fan_out.hpp"
#include "bus/resolve.hpp"
#include "bus/settle.hpp"
#include "bus/turn.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"

#include <algorithm>
#include <new>

namespace abxbus::detail {

void retain_run(Run* run) noexcept {
  run->refs.fetch_add(1, std::memory_order_relaxed);
}

void release_run(Run* run) noexcept {
  while (run != nullptr) {
    if (run->refs.load(std::memory_order_acquire) != 1 && run->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    Run* const caller = run->caller;
    run->~Run();  // its bus may be gone: what the run had of it was given back at its end
    deallocate(run);
    run = caller;  // chains of nested runs unwind here, not on the stack
  }
}

namespace {

/// The handlers of an event as the registry shows them at one version: first those of the key, then those of "*".
struct Snapshot {
  struct Part {
    Entry** entries = nullptr;
    std::uint32_t length = 0;
    /// No entry of the array is dead: none has to be looked at, which would cost a cache miss each.
    bool all_visible = false;
  };
  std::uint64_t version = 0;
  Part parts[2];
  std::uint32_t visible = 0;
  Entry* single = nullptr;
};

bool visible_at(const Entry* entry, std::uint64_t version) noexcept {
  return entry->add_version <= version && version < entry->del_version.load(std::memory_order_acquire);
}

Snapshot take_snapshot(BusCore* bus, const TypeKey* key) noexcept {
  Snapshot snapshot;
  for (;;) {
    snapshot = Snapshot{};
    snapshot.version = bus->registry.version();
    KeyList* const lists[2] = {bus->registry.find(key), bus->registry.wildcard()};
    for (int i = 0; i < 2; ++i) {
      if (lists[i] == nullptr) continue;
      EntryArray* const array = lists[i]->array.load(std::memory_order_acquire);
      if (array == nullptr) continue;
      snapshot.parts[i].length = array->length.load(std::memory_order_acquire);
      snapshot.parts[i].entries = array->places();
      // Consistent when the version did not change. Between the steps of an `on` the new entry may count a moment
      // early.
      snapshot.parts[i].all_visible = lists[i]->live.load(std::memory_order_acquire) == snapshot.parts[i].length;
    }
    if (bus->registry.version() == snapshot.version) break;
  }
  for (const auto& part : snapshot.parts) {
    if (part.all_visible && part.length != 0) {
      snapshot.visible += part.length;
      snapshot.single = load_entry(part.entries, part.length - 1);
      continue;
    }
    for (std::uint32_t i = 0; i < part.length; ++i) {
      Entry* const entry = load_entry(part.entries, i);
      if (!visible_at(entry, snapshot.version)) continue;
      ++snapshot.visible;
      snapshot.single = entry;
    }
  }
  return snapshot;
}

/// One reference on an entry for a result. The turn's holder takes them a thousand at a time when the same handler runs
/// again and again.
void reference_entry(BusCore* bus, Entry* entry, bool under_turn) noexcept {
  if (!under_turn) {
    retain_entry(entry);
    return;
  }
  if (bus->credited == entry && bus->credits != 0) {
    --bus->credits;
    return;
  }
  constexpr std::uint32_t batch = 1'024;
  if (bus->credited == entry) {
    retain_entry(entry, batch);
    bus->credits = batch - 1;
    return;
  }
  if (bus->credited != nullptr) return_credits(bus);
  // The first event of a handler takes one reference: one-off handlers never come to a second.
  retain_entry(entry, 2);
  bus->credited = entry;
  bus->credits = 1;
}

}  // namespace

void hold_entry(const Run* run, HandlerRun& result) noexcept {
  if (&result != &run->record->first_run) retain_entry(result.entry);
}

/// Holder of the turn (or the last owner): gives unused references back.
void return_credits(BusCore* bus) noexcept {
  Entry* const entry = std::exchange(bus->credited, nullptr);
  const std::uint32_t credits = std::exchange(bus->credits, 0);
  if (entry == nullptr) return;
  for (std::uint32_t left = credits; left > 1; left = 1) entry->refs.fetch_sub(credits - 1, std::memory_order_relaxed);
  if (credits != 0) release_entry(entry);
}

Run* start_run(Leg* leg, const ExecFrame* caller, bool turn_protects, std::int64_t now) noexcept {
  BusCore* const bus = leg->bus;
  Record* const record = leg->record;
  auto* const run = ::new (allocate(sizeof(Run))) Run;
  run->record = record;
  run->leg = leg;
  run->bus = bus;
  run->domain = bus->domain.get();
  if (caller != nullptr) {
    retain_run(caller->run);
    run->caller = caller->run;
    run->caller_slot = caller->slot;
    run->caller_running = caller->running;
    run->depth = caller->run->depth + 1;
    run->chain_deadline_near = caller->run->chain_deadline_near;
  }
  if (!turn_protects) {
    run->pin = bus->reclaimer.pin();
    run->pinned = true;
  }

  // Handlers: the turn's holder remembers the last event's; otherwise (and after a change) a snapshot.
  Entry* single = nullptr;
  const bool first = leg == &record->first_leg;  // the record has room for one handler run of its first leg
  if (first && turn_protects && bus->cached_key == record->key && bus->cached_single != nullptr &&
      bus->cached_version == bus->registry.version()) {
    single = bus->cached_single;
    run->count = 1;
  } else {
    const Snapshot snapshot = take_snapshot(bus, record->key);
    run->count = snapshot.visible;
    if (snapshot.visible == 1) single = snapshot.single;
    if (turn_protects) {
      bus->cached_key = record->key;
      bus->cached_version = snapshot.version;
      bus->cached_single = single;
    }
    if (snapshot.visible > 1 || (snapshot.visible == 1 && !first)) {
      void* const memory = allocate(sizeof(HandlerRun) * snapshot.visible);
      auto* const results = static_cast<HandlerRun*>(memory);
      charge_bus(record->account_bus, static_cast<std::int64_t>(usable_bytes(memory)), 0);
      if (snapshot.visible >= 1'024) bus->memory.sample_peak();
      std::uint32_t filled = 0;
      for (const auto& part : snapshot.parts) {
        for (std::uint32_t i = 0; i < part.length; ++i) {
          Entry* const entry = load_entry(part.entries, i);
          if (!part.all_visible && !visible_at(entry, snapshot.version)) continue;
          HandlerRun* const result = ::new (&results[filled++]) HandlerRun;
          result->entry = entry;  // referenced when it starts or is cancelled: until then the run's protection holds it
        }
      }
      run->results = results;
    }
  }
  if (run->results == nullptr && single != nullptr) {
    run->results = &record->first_run;
    run->results->entry = single;
    reference_entry(bus, single, turn_protects);
  }
  leg->result_count = run->count;
  leg->results.store(run->results, std::memory_order_release);

  run->first_mode = resolve_completion(record, bus) == EventHandlerCompletion::first;
  run->parallel = run->count > 1 && resolve_handler_concurrency(record, bus) == EventHandlerConcurrency::parallel;
  const std::int64_t timeout = resolve_event_timeout(record, bus);
  const std::int64_t slow = resolve_event_slow(record, bus);
  if (run->count != 0) {
    if (timeout != 0) run->event_deadline = now + timeout;
    if (slow != 0) run->event_slow_at = now + slow;
  }
  note_time(now);
  run->finished_at = now;
  std::int64_t none = 0;
  if (record->started_at.load(std::memory_order_relaxed) == 0)
    record->started_at.compare_exchange_strong(none, now, std::memory_order_release, std::memory_order_relaxed);
  return run;
}

HandlerLimits limits_of(const Run* run, const Entry* entry) noexcept {
  HandlerLimits limits;
  const TypeDefaults& fields = option_fields(run->record);
  if (const auto own = entry_timeout(*entry)) {
    limits.own_ns = nanoseconds(*own);
  } else if (fields.event_handler_timeout) {
    limits.own_ns = nanoseconds(*fields.event_handler_timeout);
  }
  limits.event_ns = resolve_event_timeout(run->record, run->bus);
  if (const auto slow = entry_slow_timeout(*entry)) {
    limits.slow_ns = nanoseconds(*slow);
  } else {
    limits.slow_ns = resolve_ns(fields.event_handler_slow_timeout, run->bus->options.handler_slow_ns);
  }
  return limits;
}

Outcome advance(Run* run, bool keep_turn) noexcept {
  if (run->parallel) return advance_parallel(run, keep_turn);
  while (run->index < run->count) {
    const std::uint32_t index = run->index;
    if (cut_of(run) != Cut::none) break;
    if (run->event_deadline <= run->finished_at) {
      if (begin_cut(run->leg, Cut::event_timeout)) cancel_children(run, index, true, Cut::event_timeout);
      break;
    }
    ++run->index;
    switch (execute(run, index, nullptr)) {
      case Step::settled:
        break;
      case Step::suspended:
      case Step::lost:
        return Outcome::left;
    }
    if (run->first_mode && usable(run->results[index]) && run->index < run->count) begin_cut(run->leg, Cut::first);
  }
  if (run->index < run->count) {
    // Cut short: what never started is cancelled.
    const Cut reason = run->leg->cut.load(std::memory_order_acquire);
    for (std::uint32_t i = run->index; i < run->count; ++i)
      if (!run->results[i].terminal()) settle_cut(run, i, reason, false);
    run->index = run->count;
  }
  finish_run(run, keep_turn);
  return Outcome::finished;
}

void finish_run(Run* run, bool keep_turn) noexcept {
  BusCore* const bus = run->bus;
  Record* const record = run->record;
  if (run->timed_out.load(std::memory_order_relaxed)) report_handler_timeouts(run);
  run->over.store(true, std::memory_order_release);
  run->leg->state.store(LegState::finished, std::memory_order_release);
  // Completions in ticket order are what lets one emit evict one event; anything else ends that.
  const bool last = record->holds.load(std::memory_order_acquire) == 1;
  if ((!run->in_ticket_order || !last) && bus->in_order.load(std::memory_order_relaxed))
    bus->log.leave_ticket_order(bus->in_order);
  if (!last && run->count != 0) {
    full_fence();  // behind the results
    tell_result_waiters(record);
  }
  release_leg(record, run->finished_at);
  // The record may be gone from here on.
  if (run->pinned) bus->reclaimer.unpin(run->pin);
  if (run->holds_turn) {
    bus->done_turn.store(bus->done_turn.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    bus->turn_epoch.store(bus->turn_epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  } else {
    bus->done_side.fetch_add(1, std::memory_order_seq_cst);
    if (bus->idle_waiters.load(std::memory_order_seq_cst) != 0) notify_idle(bus);
  }
  if (run->holds_global) release_global(bus->domain.get());
  if (run->pauses) resume_bus(bus);
  if (run->holds_turn && !keep_turn) release_turn(bus, run->by_caller);
  release_run(run);
}

}  // namespace abxbus::detail

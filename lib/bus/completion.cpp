#include "bus/completion.hpp"

#include "bus/history.hpp"
#include "bus/run.hpp"
#include "bus/turn.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/hooks.hpp"

#include <thread>

namespace abxbus::detail {

namespace {

/// The waiter bit of a record: a short section, no user code, nothing allocated, no wait.
class WaiterLock {
 public:
  explicit WaiterLock(Record* record) noexcept : record_(record) {
    int spins = 0;
    while ((record_->flags.fetch_or(flag_waiter_lock, std::memory_order_acquire) & flag_waiter_lock) != 0) {
      if (++spins < 64) {
        cpu_pause();
      } else {
        std::this_thread::yield();  // its holder was descheduled: give it the core
      }
    }
  }
  ~WaiterLock() { record_->flags.fetch_and(~flag_waiter_lock, std::memory_order_release); }
  WaiterLock(const WaiterLock&) = delete;
  WaiterLock& operator=(const WaiterLock&) = delete;

 private:
  Record* record_;
};

void unlink(Record* record, Waiter& waiter) noexcept {
  if (waiter.previous != nullptr) {
    waiter.previous->next = waiter.next;
  } else {
    record->waiters = waiter.next;
  }
  if (waiter.next != nullptr) waiter.next->previous = waiter.previous;
  waiter.next = waiter.previous = nullptr;
  waiter.linked = false;
}

/// Takes the waiters that match off the list, a few at a time, and tells them outside the bit.
void signal_waiters(Record* record, bool (*matches)(const Waiter&), WaiterState outcome) noexcept {
  constexpr int batch = 16;
  for (;;) {
    Waiter* callbacks[batch];
    const std::atomic<std::uint32_t>* words[batch];
    int called = 0, woken = 0;
    bool more = false;
    {
      const WaiterLock lock(record);
      Waiter* next = record->waiters;
      while (next != nullptr) {
        Waiter* const waiter = next;
        next = waiter->next;
        if (matches != nullptr && !matches(*waiter)) continue;
        if (called + woken == batch) {
          more = true;
          break;
        }
        unlink(record, *waiter);
        if (waiter->notify != nullptr) {
          waiter->state.store(outcome, std::memory_order_release);
          callbacks[called++] = waiter;
        } else {
          words[woken++] = reinterpret_cast<const std::atomic<std::uint32_t>*>(&waiter->state);
          waiter->state.store(outcome, std::memory_order_release);  // last touch: its frame may go now
        }
      }
    }
    ABXBUS_HOOK(waiter_signalled);
    // A futex wake of an address that is gone is harmless; at worst somebody else's wait returns early.
    for (int i = 0; i < woken; ++i) futex_wake(*words[i], 1);
    for (int i = 0; i < called; ++i) callbacks[i]->notify(callbacks[i]);
    if (!more) return;
  }
}

/// An event that is over no longer keeps its parent. Returns it when a hold is owed to it.
Record* leave_parent(Record* record, std::uint32_t flags) noexcept {
  RareData* const rare = record->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return nullptr;
  Record* parent = nullptr;
  {
    const std::lock_guard lock(rare->mutex);
    parent = std::exchange(rare->parent, nullptr);
  }
  if (parent == nullptr || (flags & flag_holds_parent) != 0) return parent;
  release_record(parent);
  return nullptr;
}

/// The first from `leg` on that a bus has run. A dropped leg and one that came for the history alone are let go of by
/// who dropped or published them.
Leg* run_leg(Leg* leg) noexcept {
  for (; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    const LegState state = leg->state.load(std::memory_order_acquire);
    if (leg->bus != nullptr && state != LegState::dropped && state != LegState::side) return leg;
  }
  return nullptr;
}

/// The last hold is gone. Returns the parent whose hold this event owes, if any (with a reference).
Record* complete(Record* record, std::int64_t now) noexcept {
  if (record->started_at.load(std::memory_order_relaxed) == 0) record->started_at.store(now, std::memory_order_relaxed);
  record->completed_at.store(now, std::memory_order_relaxed);
  ABXBUS_HOOK(complete_counted);
  // Zero-history buses forget the event before anybody can learn that it is completed (H-HIST-23).
  for (Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire))
    if (leg->bus != nullptr) before_completion(leg);

  // The bus's references keep the record until `leg_over` below; a waiter that times out in between may not free it.
  const std::uint32_t before = record->flags.fetch_or(flag_completed, std::memory_order_acq_rel);
  if ((before & (flag_waiters | flag_waiter_lock)) != 0) signal_waiters(record, nullptr, WaiterState::signalled);
  Record* const parent = leave_parent(record, before);
  // Each leg's reference stands for queue and history; the queue's interest ends here. The record may go with the last
  // of them, so the next one is looked for before.
  Leg* leg = run_leg(&record->first_leg);
  while (leg != nullptr) {
    Leg* const next = run_leg(leg->next.load(std::memory_order_acquire));
    after_completion(leg);
    leg->bus->log.over(leg);
    leg = next;
  }
  return parent;
}

}  // namespace

bool link_waiter(Record* record, Waiter& waiter) noexcept {
  const WaiterLock lock(record);
  const std::uint32_t set =
      flag_waiters | (waiter.wants != Waiter::completion ? flag_wants_first : 0U) | (waiter.jumps ? flag_jumps : 0U);
  const std::uint32_t before = record->flags.fetch_or(set, std::memory_order_seq_cst);
  if ((before & (flag_completed | flag_dropped)) != 0) return false;
  // Dekker (status, flag_wants_first): a settler stores the status, then reads the flag.
  if (waiter.wants == Waiter::first_result && has_usable_value(record)) return false;
  if (waiter.wants == Waiter::any_result && waiter.run->status.load(std::memory_order_seq_cst) >= RunStatus::completed)
    return false;
  waiter.linked = true;
  waiter.previous = nullptr;
  waiter.next = record->waiters;
  if (record->waiters != nullptr) record->waiters->previous = &waiter;
  record->waiters = &waiter;
  return true;
}

bool unlink_waiter(Record* record, Waiter& waiter) noexcept {
  const WaiterLock lock(record);
  if (!waiter.linked) return false;
  unlink(record, waiter);
  return true;
}

bool has_usable_value(const Record* record) noexcept {
  for (const Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    const HandlerRun* results = leg->results.load(std::memory_order_acquire);
    if (results == nullptr) continue;
    for (std::uint32_t i = 0; i < leg->result_count; ++i) {
      if (results[i].status.load(std::memory_order_seq_cst) != RunStatus::completed) continue;
      if (!results[i].value.empty() && !results[i].value.is(ValueKind::event)) return true;
    }
  }
  return false;
}

void result_settled(Record* record, bool is_usable) noexcept {
  full_fence();
  if ((record->flags.load(std::memory_order_seq_cst) & flag_wants_first) == 0) return;
  signal_waiters(
      record,
      is_usable ? +[](const Waiter& waiter) { return waiter.wants != Waiter::completion; }
                : +[](const Waiter& waiter) { return waiter.wants == Waiter::any_result; },
      WaiterState::signalled);
}

void tell_result_waiters(Record* record) noexcept {
  if ((record->flags.load(std::memory_order_seq_cst) & flag_wants_first) != 0)
    result_settled(record, has_usable_value(record));
}

namespace {

/// Somebody has brought the holds to 0: the event is over, and maybe those that waited for it alone.
void holds_gone(Record* record, std::int64_t now) noexcept {
  RecordPtr keep;  // the reference that a completed child held on its parent
  for (;;) {
    bool any_ran = false;
    for (Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire))
      any_ran = any_ran || leg->state.load(std::memory_order_acquire) != LegState::dropped;
    Record* parent = nullptr;
    if (any_ran) {
      parent = complete(record, now);
    } else {
      // Every bus that accepted it was destroyed before it ran there (S-DST-7).
      const std::uint32_t before = record->flags.fetch_or(flag_dropped, std::memory_order_acq_rel);
      signal_waiters(record, nullptr, WaiterState::dropped);
      parent = leave_parent(record, before);
    }
    if (parent == nullptr) return;
    keep = RecordPtr(parent);
    record = parent;
    if (record->holds.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
}

}  // namespace

void release_hold(Record* record, std::int64_t now) noexcept {
  if (record->holds.fetch_sub(1, std::memory_order_acq_rel) == 1) holds_gone(record, now);
}

void release_leg(Record* record, std::int64_t now) noexcept {
  // A compare-exchange, since after a subtraction that leaves others the record may be gone.
  std::uint32_t only_one = 1;
  if (record->holds.compare_exchange_strong(only_one, 0, std::memory_order_acq_rel, std::memory_order_relaxed))
    return holds_gone(record, now);
  const RecordPtr keep = RecordPtr::share(record);
  release_hold(record, now);
  full_fence();  // behind the store of the leg's state
  look_for_legs(record);
}

void look_for_legs(Record* record) noexcept {
  if ((record->flags.load(std::memory_order_seq_cst) & flag_jumps) == 0) return;
  signal_waiters(
      record, +[](const Waiter& waiter) { return waiter.jumps; }, WaiterState::look_again);
}

void drop_leg(Leg* leg) noexcept {
  Record* const record = leg->record;
  const RecordPtr keep = RecordPtr::share(record);
  leg->state.store(LegState::dropped, std::memory_order_release);
  release_hold(record, now_ns());
  leg->bus->log.over(leg);
}

void make_blocking(Record* child) noexcept {
  RareData* const rare = child->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return;
  Record* parent = nullptr;
  {
    const std::lock_guard lock(rare->mutex);
    parent = rare->parent;
    if (parent != nullptr) retain(parent);
  }
  if (parent == nullptr) {
    // Over already, so nobody waits for it: the flag alone, so that what is seen does not depend on timing (H-LIN-10).
    child->flags.fetch_or(flag_blocking, std::memory_order_acq_rel);
    return;
  }
  const RecordPtr keep(parent);
  // The hold first, then the mark: one word decides between "completed before it was counted" and "completion gives it
  // back". The caller runs inside a handler of the parent, but that may be cut short at any moment, and the parent
  // complete: nothing raises the holds from 0.
  std::uint32_t holds = parent->holds.load(std::memory_order_acquire);
  do {
    if (holds == 0) {
      child->flags.fetch_or(flag_blocking, std::memory_order_acq_rel);
      return;
    }
  } while (!parent->holds.compare_exchange_weak(holds, holds + 1, std::memory_order_acq_rel));
  const std::uint32_t before = child->flags.fetch_or(flag_blocking | flag_holds_parent, std::memory_order_acq_rel);
  if ((before & (flag_completed | flag_holds_parent)) != 0) release_hold(parent, now_ns());
}

void stop_blocking(Record* child) noexcept {
  RareData* const rare = child->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return;
  RecordPtr parent;
  {
    const std::lock_guard lock(rare->mutex);
    if (rare->parent == nullptr) return;  // its completion, which lets go of the parent, has come first
    parent = RecordPtr::share(rare->parent);
  }
  // One word decides again: the completion gives the hold back, or this does.
  const std::uint32_t before = child->flags.fetch_and(~flag_holds_parent, std::memory_order_acq_rel);
  if ((before & (flag_holds_parent | flag_completed)) == flag_holds_parent)
    release_hold(as_record(parent.get()), now_ns());
}

bool bus_is_idle(const BusCore* bus) noexcept {
  // Both counters only grow and never pass the tickets: equality of an earlier sum with a later count means equality at
  // that moment.
  const std::uint64_t done =
      bus->done_turn.load(std::memory_order_seq_cst) + bus->done_side.load(std::memory_order_seq_cst);
  return bus->destroyed.load(std::memory_order_acquire) || done == bus->log.issued();
}

void notify_idle(BusCore* bus) noexcept {
  if (!bus_is_idle(bus)) return;
  bus->idle_signal.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(bus->idle_signal, INT32_MAX);
}

}  // namespace abxbus::detail

#include "bus/emit.hpp"
#include "bus/history.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "bus/waiting.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"

#include <abxbus/detail/coroutine.hpp>
#include <abxbus/error.hpp>

#include <algorithm>
#include <memory>

/// find: a past scan and a future wait, handed over so that every accepted event is offered exactly once.
///
/// Registration: the waiter is listed, `find_waiters` raised, then B = tail is read, then the slots below B are
/// scanned. An emitter publishes its slot, then reads `find_waiters` (Dekker find_waiters, slot; all seq_cst). A ticket
/// below B is seen by the scan, or its slot was empty then and its emitter sees the waiter; a ticket from B on was
/// taken after the waiter was visible. So an offer for a ticket below B counts only if the scan met a gap there.
namespace abxbus::detail {

/// One waiting find. Shared by the caller and by emitters that are offering.
struct FindWaiter : std::enable_shared_from_this<FindWaiter> {
  enum : std::uint32_t { waiting, matched, ended };

  BusCore* bus = nullptr;        ///< one reference
  const TypeKey* key = nullptr;  ///< null: any type
  std::function<bool(RecordHead*)> where;
  std::uint64_t from = 0;
  std::vector<std::uint64_t> gaps;

  std::mutex mutex;  ///< inbox, busy; predicates run outside
  bool busy = true;  ///< scanning, or somebody runs the predicate
  std::vector<std::pair<std::uint64_t, RecordPtr>> inbox;

  /// waiting -> matched | ended by compare-exchange (acq_rel): one outcome.
  std::atomic<std::uint32_t> state{waiting};
  RecordPtr found;
  std::exception_ptr error;
  /// Set before the waiter is listed; called once, by who ended the wait.
  std::function<void()> notify;

  ~FindWaiter() { release_core(bus); }

  bool accepts(std::uint64_t ticket, const Record* record) const noexcept {
    if (key != nullptr && record->key != key) return false;
    return ticket >= from || std::find(gaps.begin(), gaps.end(), ticket) != gaps.end();
  }
  void end(std::uint32_t outcome, RecordPtr record, std::exception_ptr failure) noexcept {
    std::uint32_t expected = waiting;
    if (!state.compare_exchange_strong(expected, ended + 1, std::memory_order_acq_rel)) return;
    found = std::move(record);
    error = std::move(failure);
    state.store(outcome, std::memory_order_release);
    notify();
  }
  /// Runs the predicate over what has been offered; only the one who set `busy`.
  void drain_inbox() noexcept {
    for (;;) {
      std::pair<std::uint64_t, RecordPtr> item;
      {
        const std::lock_guard lock(mutex);
        if (inbox.empty() || state.load(std::memory_order_acquire) != waiting) {
          busy = false;
          return;
        }
        const auto first = std::min_element(inbox.begin(), inbox.end(),
                                            [](const auto& a, const auto& b) { return a.first < b.first; });
        item = std::move(*first);
        inbox.erase(first);
      }
      try {
        if (!where || where(item.second.get())) end(matched, std::move(item.second), nullptr);
      } catch (...) {
        end(ended, {}, std::current_exception());
      }
    }
  }
};

namespace {

void unlist(FindWaiter* waiter) noexcept {
  BusCore* const bus = waiter->bus;
  std::shared_ptr<FindWaiter> gone;
  const std::lock_guard lock(bus->find_mutex);
  const auto place = std::find_if(bus->find_list.begin(), bus->find_list.end(),
                                  [&](const auto& each) { return each.get() == waiter; });
  if (place == bus->find_list.end()) return;
  gone = std::move(*place);
  bus->find_list.erase(place);
  bus->find_waiters.fetch_sub(1, std::memory_order_seq_cst);
}

const TypeKey* key_of_pattern(std::string_view pattern) {
  if (pattern.empty()) throw ValidationError("event pattern must not be empty", "pattern");
  return pattern == "*" ? nullptr : intern_type(pattern);
}

/// The scan of the past window; `gaps` receives tickets whose slots were empty.
RecordPtr scan_past(BusCore* bus, const TypeKey* key, Window past, const std::function<bool(RecordHead*)>& where,
                    std::uint64_t below) {
  if (!past.open()) return {};
  const std::int64_t since = past.unbounded() ? INT64_MIN : now_ns() - nanoseconds(*past.length());
  return newest_first(bus, below, [&](Record* record) {
    if (record->created_at < since) return false;
    if (key != nullptr && record->key != key) return false;
    return !where || where(record);
  });
}

/// Lists the waiter, then scans. Returns the match, or nothing: then the waiter is listed and open.
RecordPtr register_and_scan(const std::shared_ptr<FindWaiter>& waiter, Window past) {
  BusCore* const bus = waiter->bus;
  std::uint64_t below = 0;
  {
    // Held from before the waiter is listed: an offer made meanwhile waits until it is known which tickets the scan
    // has.
    const std::lock_guard lock(waiter->mutex);
    {
      const std::lock_guard list_lock(bus->find_mutex);
      bus->find_list.push_back(waiter);
    }
    bus->find_waiters.fetch_add(1, std::memory_order_seq_cst);
    below = bus->log.issued();
    waiter->from = below;
    const ReaderGuard guard(bus->log);
    // Only the newest tickets can be unpublished: their emitters are between two instructions.
    for (std::uint64_t ticket = below; ticket > 0 && below - ticket < 4'096;) {
      --ticket;
      LogSegment* const segment = bus->log.find(ticket);
      if (segment == nullptr || segment->number < ticket / segment_slots) {
        waiter->gaps.push_back(ticket);
        continue;
      }
      if (segment->number != ticket / segment_slots) break;
      if ((segment->slots[ticket % segment_slots].load(std::memory_order_seq_cst) & ~slot_bits) == 0)
        waiter->gaps.push_back(ticket);
    }
  }
  RecordPtr match = scan_past(bus, waiter->key, past, waiter->where, below);
  if (match) unlist(waiter.get());
  return match;
}

std::shared_ptr<FindWaiter> make_waiter(BusCore* bus, const TypeKey* key, std::function<bool(RecordHead*)> where) {
  auto waiter = std::make_shared<FindWaiter>();
  retain_core(bus);
  waiter->bus = bus;
  waiter->key = key;
  waiter->where = std::move(where);
  return waiter;
}

std::int64_t window_deadline(Window future) {
  if (future.unbounded()) return no_deadline;
  const std::int64_t ns = nanoseconds(*future.length());
  return ns >= INT64_MAX / 2 ? no_deadline : steady_ns() + ns;
}

class FindFuture final : public FutureState {
 public:
  std::shared_ptr<FindWaiter> waiter;
  std::optional<CallCancellation> cancellation;
  TimerHeap::Key timer{};
  bool timer_armed = false;
  /// The end of a window, on the pool: what goes with it is nothing for the watchdog's thread.
  struct Expiry : Job {
    FindFuture* state = nullptr;
  } expiry;
  static void expire(Job* job) noexcept {
    FindFuture* const self = static_cast<Expiry*>(job)->state;
    self->waiter->end(FindWaiter::ended, {}, nullptr);
    self->release();
  }

  void finish() noexcept {
    unlist(waiter.get());
    if (waiter->error) {
      fail(waiter->error);
    } else {
      event = std::move(waiter->found);
      complete();
    }
    release();
  }
  void abandon() noexcept override {
    cancellation.reset();
    if (timer_armed && watchdog().disarm(timer)) release();
    if (waiter) waiter->end(FindWaiter::ended, {}, nullptr);
  }
};

}  // namespace

void offer_to_finders(BusCore* bus, Record* record, std::uint64_t ticket) noexcept {
  std::vector<std::shared_ptr<FindWaiter>> waiters;
  {
    const std::lock_guard lock(bus->find_mutex);
    waiters = bus->find_list;
  }
  for (const auto& waiter : waiters) {
    {
      const std::lock_guard lock(waiter->mutex);
      if (waiter->state.load(std::memory_order_acquire) != FindWaiter::waiting) continue;
      if (!waiter->accepts(ticket, record)) continue;
      waiter->inbox.emplace_back(ticket, RecordPtr::share(record));
      if (std::exchange(waiter->busy, true)) continue;
    }
    waiter->drain_inbox();
  }
}

void end_finders(BusCore* bus) noexcept {
  std::vector<std::shared_ptr<FindWaiter>> waiters;
  {
    const std::lock_guard lock(bus->find_mutex);
    waiters = bus->find_list;
  }
  for (const auto& waiter : waiters) waiter->end(FindWaiter::ended, {}, nullptr);
}

RecordPtr find_blocking(BusCore* bus, std::string_view pattern, Window past, Window future,
                        std::function<bool(RecordHead*)> where, const std::stop_token& stop) {
  require_live(bus, "find");
  const TypeKey* const key = key_of_pattern(pattern);
  if (caller_is_stale() || stop.stop_requested()) throw OperationCancelled("find was stopped");
  if (!future.open()) return scan_past(bus, key, past, where, bus->log.issued());

  const std::int64_t deadline = window_deadline(future);
  const auto waiter = make_waiter(bus, key, std::move(where));
  waiter->notify = [state = &waiter->state] { futex_wake(*state, INT32_MAX); };
  RecordPtr match;
  try {
    match = register_and_scan(waiter, past);
  } catch (...) {
    unlist(waiter.get());
    throw;
  }
  if (match) return match;
  if (bus->destroyed.load(std::memory_order_seq_cst)) waiter->end(FindWaiter::ended, {}, nullptr);
  waiter->drain_inbox();
  std::atomic<bool> cancelled{false};
  {
    const CallCancellation cancellation(stop, [&] {
      cancelled.store(true, std::memory_order_release);
      waiter->end(FindWaiter::ended, {}, nullptr);
    });
    const WaitScope blocked;
    for (;;) {
      const std::uint32_t state = waiter->state.load(std::memory_order_acquire);
      if (state == FindWaiter::matched || state == FindWaiter::ended) break;
      futex_wait(waiter->state, state, deadline);
      if (deadline != no_deadline && steady_ns() >= deadline) waiter->end(FindWaiter::ended, {}, nullptr);
    }
  }
  unlist(waiter.get());
  if (waiter->error) std::rethrow_exception(waiter->error);
  if (cancelled.load(std::memory_order_acquire) && !waiter->found) throw OperationCancelled("find was stopped");
  return std::move(waiter->found);
}

FuturePtr find_future(BusCore* bus, std::string_view pattern, Window past, Window future,
                      std::function<bool(RecordHead*)> where, const std::stop_token& stop) {
  require_live(bus, "find");
  const TypeKey* const key = key_of_pattern(pattern);
  auto* const state = new FindFuture;
  FuturePtr pointer(state);
  try {
    if (!future.open()) {
      state->event = scan_past(bus, key, past, where, bus->log.issued());
      state->complete();
      return pointer;
    }
    const std::int64_t deadline = window_deadline(future);
    state->waiter = make_waiter(bus, key, std::move(where));
    state->retain();  // the waiter's
    state->waiter->notify = [state] { state->finish(); };
    RecordPtr match = register_and_scan(state->waiter, past);
    if (match) {
      state->waiter->end(FindWaiter::matched, std::move(match), nullptr);
      return pointer;
    }
    if (bus->destroyed.load(std::memory_order_seq_cst)) state->waiter->end(FindWaiter::ended, {}, nullptr);
    state->cancellation.emplace(stop, [waiter = state->waiter] {
      waiter->end(FindWaiter::ended, {}, std::make_exception_ptr(OperationCancelled("find was stopped")));
    });
    if (deadline != no_deadline) {
      state->retain();  // the timer's
      state->expiry.state = state;
      state->expiry.run = &FindFuture::expire;
      state->timer = watchdog().arm(
          deadline,
          [](void* context) {
            auto* const self = static_cast<FindFuture*>(context);
            self->waiter->bus->pool->submit(&self->expiry, WorkerPool::Urgency::at_once);
          },
          state);
      state->timer_armed = true;
    }
    state->waiter->drain_inbox();
  } catch (...) {
    if (state->waiter) {
      state->waiter->end(FindWaiter::ended, {}, std::current_exception());
    } else {
      throw;
    }
  }
  return pointer;
}

}  // namespace abxbus::detail

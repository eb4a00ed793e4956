#include "dispatch/event_log.hpp"

#include "event/futex.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace abxbus::detail {

namespace {

LogSegment* make_segment(MemoryAccount& account, std::uint64_t number) {
  void* const memory = allocate(sizeof(LogSegment));
  account.charge(static_cast<std::int64_t>(usable_bytes(memory)), 0);
  auto* const segment = ::new (memory) LogSegment;
  segment->number = number;
  return segment;
}

void free_segment(MemoryAccount& account, LogSegment* segment) noexcept {
  const auto bytes = static_cast<std::int64_t>(usable_bytes(segment));
  segment->~LogSegment();
  deallocate(segment);
  account.charge(-bytes, 0);
}

}  // namespace

EventLog::~EventLog() {
  LogSegment* segment = first_.load(std::memory_order_acquire);
  while (segment != nullptr)
    free_segment(account_, std::exchange(segment, segment->next.load(std::memory_order_relaxed)));
  for (LogSegment* each : deferred_segments_) free_segment(account_, each);
  while (kept_ != nullptr) free_segment(account_, std::exchange(kept_, kept_->kept));
}

LogSegment* EventLog::append(LogSegment* last) {
  LogSegment* next = last->next.load(std::memory_order_acquire);
  if (next != nullptr) return next;
  LogSegment* const fresh = make_segment(account_, last->number + 1);
  fresh->previous.store(last, std::memory_order_relaxed);
  if (last->next.compare_exchange_strong(next, fresh, std::memory_order_acq_rel, std::memory_order_acquire))
    return fresh;
  free_segment(account_, fresh);
  return next;
}

void EventLog::grow(std::uint64_t about) {
  const ReaderGuard guard(*this);
  if (first_.load(std::memory_order_acquire) == nullptr) {
    LogSegment* const fresh = make_segment(account_, 0);
    LogSegment* none = nullptr;
    if (first_.compare_exchange_strong(none, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) {
      std::uint64_t empty = 0;
      hint_.compare_exchange_strong(empty, pack(fresh), std::memory_order_acq_rel, std::memory_order_relaxed);
    } else {
      free_segment(account_, fresh);
    }
  }
  if ((about & (segment_slots - 1)) == segment_slots / 2) {
    const std::uint64_t hint = hint_.load(std::memory_order_acquire);
    if (hint != 0) append(unpack(hint));
  }
}

/// Segment of a number, made if it is missing; only under a ReaderGuard. Allocation failure here is fatal: the ticket
/// has been taken. `reserve` makes segments 128 tickets ahead, so it takes that many emits in flight to get here.
LogSegment* EventLog::reach(std::uint64_t number) {
  LogSegment* segment = unpack(hint_.load(std::memory_order_acquire));
  if (segment == nullptr) segment = first_.load(std::memory_order_acquire);
  while (segment->number > number) segment = segment->previous.load(std::memory_order_acquire);
  while (segment->number < number) segment = append(segment);
  return segment;
}

std::atomic<std::uintptr_t>& EventLog::find_own_slot(std::uint64_t ticket) noexcept {
  const ReaderGuard guard(*this);
  const std::uint64_t number = ticket / segment_slots;
  LogSegment* const segment = reach(number);
  // Move the hint forward, never back.
  std::uint64_t hint = hint_.load(std::memory_order_acquire);
  while (hint == 0 || unpack(hint)->number < number) {
    if (hint_.compare_exchange_weak(hint, pack(segment), std::memory_order_acq_rel, std::memory_order_acquire)) break;
  }
  return segment->slots[ticket % segment_slots];
}

bool EventLog::close() noexcept {
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  do {
    if ((tail & log_closed) != 0) return false;
  } while (!tail_.compare_exchange_weak(tail, tail | log_closed, std::memory_order_seq_cst));
  closed_at_.store(tail, std::memory_order_release);  // later emits still raise the low bits of the closed word
  return true;
}

std::uint64_t EventLog::issued() const noexcept {
  const std::uint64_t tail = tail_.load(std::memory_order_seq_cst);
  if ((tail & log_closed) == 0) return tail;
  const std::uint64_t closed_at = closed_at_.load(std::memory_order_acquire);
  return closed_at != not_closed ? closed_at : tail & ~log_closed;
}

std::atomic<std::uintptr_t>* EventLog::find_listed_slot(std::uint64_t ticket) noexcept {
  const ReaderGuard guard(*this);
  LogSegment* const segment = find(ticket);
  if (segment == nullptr || segment->number != ticket / segment_slots) return nullptr;
  evict_hint_.store(pack(segment), std::memory_order_release);
  return &segment->slots[ticket % segment_slots];
}

LogSegment* EventLog::find(std::uint64_t ticket) noexcept {
  const std::uint64_t number = ticket / segment_slots;
  LogSegment* segment = unpack(hint_.load(std::memory_order_acquire));
  while (segment != nullptr && segment->number > number) segment = segment->previous.load(std::memory_order_acquire);
  while (segment != nullptr && segment->number < number) segment = segment->next.load(std::memory_order_acquire);
  return segment;
}

LogSegment* EventLog::start_lane() noexcept {
  const std::lock_guard lock(trim_mutex_);
  lane_segment = first_.load(std::memory_order_acquire);
  if (lane_segment != nullptr) lane_number_.store(lane_segment->number, std::memory_order_release);
  return lane_segment;
}

void EventLog::passed(std::uint64_t number, bool lane) noexcept {
  (lane ? lane_number_ : drain_number_).store(number, std::memory_order_release);
  release_segments();
}

void EventLog::release_segments() noexcept {
  // One at a time and freed without the mutex: freeing may end values of the user's that were waiting for a reader.
  while (LogSegment* const segment = unlink_oldest()) retire_segment(segment);
}

LogSegment* EventLog::unlink_oldest() noexcept {
  const std::unique_lock lock(trim_mutex_, std::try_to_lock);
  if (!lock) return nullptr;  // whoever holds it looks again
  for (;;) {
    LogSegment* const segment = first_.load(std::memory_order_acquire);
    if (segment == nullptr) return nullptr;
    std::uint64_t passed_number = drain_number_.load(std::memory_order_acquire);
    if (lane_used.load(std::memory_order_seq_cst))
      passed_number = std::min(passed_number, lane_number_.load(std::memory_order_acquire));
    LogSegment* const next = segment->next.load(std::memory_order_acquire);
    if (segment->number >= passed_number || next == nullptr) return nullptr;
    if (unpack(hint_.load(std::memory_order_acquire)) == segment) return nullptr;
    for (const auto& slot : segment->slots)
      if ((slot.load(std::memory_order_acquire) & slot_unlisted) == 0) return nullptr;
    next->previous.store(nullptr, std::memory_order_release);
    first_.store(next, std::memory_order_release);
    if (segment->number >= kept_below_) return segment;
    segment->kept = kept_;
    kept_ = segment;
  }
}

void EventLog::leave_ticket_order(std::atomic<bool>& in_order) noexcept {
  if (!in_order.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(trim_mutex_);
  in_order.store(false, std::memory_order_seq_cst);
  kept_below_ = std::max(kept_below_, issued() / segment_slots + 1);
}

/// Puts an item off while somebody reads. False: nobody does, it may go at once. The last reader leaves under the
/// mutex, so one that is counted here is still to come past the list.
template <class T>
bool EventLog::put_off(std::vector<T*>& list, T* item) noexcept {
  if (readers_.load(std::memory_order_seq_cst) == 0) return false;
  const std::lock_guard lock(deferred_mutex_);
  if (readers_.load(std::memory_order_seq_cst) == 0) return false;
  list.push_back(item);
  return true;
}

void EventLog::retire_segment(LogSegment* segment) noexcept {
  full_fence();
  if (!put_off(deferred_segments_, segment)) free_segment(account_, segment);
}

void EventLog::forget(Leg* leg) noexcept {
  if (!put_off(deferred_legs_, leg)) dispose_leg(leg, leg_evicted);
}

void EventLog::over(Leg* leg) noexcept {
  Record* const record = leg->record;
  if (leg->disposal.fetch_or(leg_over, std::memory_order_seq_cst) == 0) return;  // still listed
  if (!put_off(deferred_records_, record)) release_record(record);
}

void EventLog::leave_reader() noexcept {
  std::vector<Leg*> legs;
  std::vector<Record*> records;
  std::vector<LogSegment*> segments;
  {
    const std::lock_guard lock(deferred_mutex_);
    if (readers_.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
    // No reader at this moment: what was unlinked before cannot be reached by one that begins now.
    if (deferred_legs_.empty() && deferred_records_.empty() && deferred_segments_.empty()) return;
    records.swap(deferred_records_);
    legs.swap(deferred_legs_);
    segments.swap(deferred_segments_);
  }
  for (LogSegment* segment : segments) free_segment(account_, segment);
  // The last event of a bus that is gone takes the bus along: nothing of it may be touched after these.
  for (Leg* leg : legs) dispose_leg(leg, leg_evicted);
  for (Record* record : records) release_record(record);
}

}  // namespace abxbus::detail

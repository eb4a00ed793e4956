#pragma once

#include "event/record.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

/// The log of a bus: its events by ticket. It is queue and history in one.
///
/// Purpose: `emit` takes a ticket and publishes its leg in the slot of that ticket, which is the enqueue; the drain
/// walks a cursor over the slots, which is the dequeue; history is the slots that are not unlisted. So acceptance
/// order, queue order and history order are one by construction.
///
/// Slot: 0 (ticket not taken or not yet published) -> leg, plus bits:
///   unlisted  history has forgotten it
///   spent     claimed: who sets this bit (seq_cst fetch_or) runs or drops the leg; the record behind an unclaimed slot
///   is
///             alive, behind a claimed one only for who holds a reference
///   lane      parallel-mode: the lane starts it, the drain steps over it
///   odd       its concurrency mode has to be looked at before it is claimed
/// A segment of 256 slots goes when all of them are unlisted and the cursors have passed it, from the oldest on.
///
/// A record may be looked at through a slot under a ReaderGuard unless the slot is both unlisted and spent.
/// Invalid: touching a segment other than through a slot that is known to keep it (published by oneself, not yet passed
/// by the cursor one holds, listed) without a ReaderGuard.
/// Threads: any. Memory ordering: publication is seq_cst (Dekker with the turn word, the lane word and the number of
/// find waiters); whoever loads the slot (acquire) sees the record. Reclamation: a reader raises `readers_` (seq_cst)
/// before it loads slots; who unlinks a record or segment does so first and then reads `readers_` behind a full fence;
/// if anybody reads, the memory waits until a moment without readers (Dekker readers_, slot / reference count).
namespace abxbus::detail {

inline constexpr std::uint64_t segment_slots = 256;
inline constexpr std::uint64_t log_closed = 1ULL << 63;
inline constexpr std::uintptr_t slot_unlisted = 1;
inline constexpr std::uintptr_t slot_spent = 2;
inline constexpr std::uintptr_t slot_lane = 4;
inline constexpr std::uintptr_t slot_odd = 8;
inline constexpr std::uintptr_t slot_bits = 15;

struct LogSegment {
  std::uint64_t number = 0;
  /// Installed by compare-exchange (release), walked with acquire.
  std::atomic<LogSegment*> next{nullptr};
  /// Older segment; null for the oldest. Changed when that one goes, under the trim lock.
  std::atomic<LogSegment*> previous{nullptr};
  LogSegment* kept = nullptr;  ///< trim lock: the segment unlinked before this one, kept as well
  std::atomic<std::uintptr_t> slots[segment_slots] = {};
};

class EventLog {
 public:
  explicit EventLog(MemoryAccount& account) noexcept : account_(account) {}
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  static Leg* leg_of(std::uintptr_t slot) noexcept { return reinterpret_cast<Leg*>(slot & ~slot_bits); }

  /// Makes sure, before a ticket is taken, that taking one cannot fail: allocates ahead. Throws std::bad_alloc.
  void reserve(std::uint64_t about) {
    if (hint_.load(std::memory_order_relaxed) == 0 || (about & (segment_slots - 1)) == segment_slots / 2) [[unlikely]]
      grow(about);
  }
  /// The slot of a ticket that the caller owns and has not published.
  std::atomic<std::uintptr_t>& own_slot(std::uint64_t ticket) noexcept {
    const std::uint64_t hint = hint_.load(std::memory_order_acquire);
    if ((hint & hint_mask) == ((ticket / segment_slots) & hint_mask)) [[likely]] {
      LogSegment* const segment = unpack(hint);
      if (segment != nullptr && segment->number == ticket / segment_slots)
        return segment->slots[ticket % segment_slots];
    }
    return find_own_slot(ticket);
  }

  /// The slot of the event to evict in ticket order: its being listed keeps the segment, since only the caller unlists
  /// it then. Where that has ended meanwhile (`leave_ticket_order`) the segment is kept all the same, or null is
  /// returned because history has forgotten the event.
  std::atomic<std::uintptr_t>* listed_slot(std::uint64_t ticket) noexcept {
    const std::uint64_t hint = evict_hint_.load(std::memory_order_acquire);
    if (hint != 0 && (hint & hint_mask) == ((ticket / segment_slots) & hint_mask)) [[likely]] {
      LogSegment* const segment = unpack(hint);
      if (segment->number == ticket / segment_slots) return &segment->slots[ticket % segment_slots];
    }
    return find_listed_slot(ticket);
  }

  std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_seq_cst); }
  std::atomic<std::uint64_t>& tail_word() noexcept { return tail_; }
  /// Tickets given out; constant once the log is closed.
  std::uint64_t issued() const noexcept;
  bool closed() const noexcept { return (tail_.load(std::memory_order_acquire) & log_closed) != 0; }
  /// Ends acceptance; true for the call that did it.
  bool close() noexcept;

  /// Segment of a ticket, or null when it has gone or was never made. Only under a ReaderGuard.
  LogSegment* find(std::uint64_t ticket) noexcept;
  /// Oldest segment; only under a ReaderGuard or the trim lock.
  LogSegment* first() const noexcept { return first_.load(std::memory_order_acquire); }

  /// Number of slots that were unlisted.
  std::atomic<std::uint64_t>& removed() noexcept { return removed_; }

  /// A cursor has left all segments before `number`: the oldest may go if they are unlisted. `lane` selects the cursor.
  void passed(std::uint64_t number, bool lane) noexcept;
  /// First use of the lane: it begins at the oldest segment.
  LogSegment* start_lane() noexcept;
  /// Frees what can go; called when a whole segment may have become free. Takes the trim lock if it is free.
  void release_segments() noexcept;
  /// From here on others than the emitter of ticket t + N may unlist ticket t: clears the mark (seq_cst). Emitters that
  /// have read it before may still be on their way to slots of segments that exist now, so those are kept until the log
  /// goes. Once a log.
  void leave_ticket_order(std::atomic<bool>& in_order) noexcept;

  /// Gives the bus's reference up for a leg whose slot the caller has unlisted just now by a seq_cst read-modify-write
  /// (Dekker readers_, slot), respecting readers.
  void forget(Leg* leg) noexcept;
  /// The queue's interest in the leg has ended: its slot was claimed (seq_cst) and its event is over. Gives the bus's
  /// reference up if history has forgotten it too, respecting readers that saw the slot unclaimed.
  void over(Leg* leg) noexcept;
  void retire_segment(LogSegment* segment) noexcept;

  std::mutex& trim_mutex() noexcept { return trim_mutex_; }

  void enter_reader() noexcept { readers_.fetch_add(1, std::memory_order_seq_cst); }
  void leave_reader() noexcept;

  /// Cursor of the drain: only the holder of the turn. Null before the first event.
  LogSegment* drain_segment = nullptr;
  LogSegment* lane_segment = nullptr;
  /// Whether any parallel-mode event was ever emitted here: serial emitters then watch the lane (seq_cst).
  std::atomic<bool> lane_used{false};

 private:
  static constexpr std::uint64_t hint_mask = 0xFFFF;
  static LogSegment* unpack(std::uint64_t hint) noexcept { return reinterpret_cast<LogSegment*>(hint >> 16); }
  static std::uint64_t pack(LogSegment* segment) noexcept {
    return (reinterpret_cast<std::uint64_t>(segment) << 16) | (segment->number & hint_mask);
  }
  void grow(std::uint64_t about);
  template <class T>
  bool put_off(std::vector<T*>& list, T* item) noexcept;
  std::atomic<std::uintptr_t>& find_own_slot(std::uint64_t ticket) noexcept;
  std::atomic<std::uintptr_t>* find_listed_slot(std::uint64_t ticket) noexcept;
  /// The oldest segment, no longer in the list; null when it has to stay.
  LogSegment* unlink_oldest() noexcept;
  LogSegment* append(LogSegment* last);
  LogSegment* reach(std::uint64_t number);

  MemoryAccount& account_;
  /// Next ticket, or closed. Emitters only.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  /// Newest segment as pointer and number; read by emitters, written once a segment.
  alignas(64) std::atomic<std::uint64_t> hint_{0};
  std::atomic<LogSegment*> first_{nullptr};
  static constexpr std::uint64_t not_closed = ~std::uint64_t{0};
  /// Written once, by who closed (release).
  std::atomic<std::uint64_t> closed_at_{not_closed};
  /// Evictors only (emitters in drop mode, finishers in zero mode).
  alignas(64) std::atomic<std::uint64_t> removed_{0};
  /// Segment that evictors work in, as `hint_`.
  std::atomic<std::uint64_t> evict_hint_{0};
  std::atomic<std::uint32_t> readers_{0};
  /// Number of the segment each cursor is in; written once a segment by its holder (release).
  std::atomic<std::uint64_t> drain_number_{0};
  std::atomic<std::uint64_t> lane_number_{0};
  std::mutex trim_mutex_;
  std::uint64_t kept_below_ = 0;  ///< trim lock: segments with smaller numbers are not freed
  LogSegment* kept_ = nullptr;    ///< trim lock
  std::mutex deferred_mutex_;     ///< no user code inside: lists only
  std::vector<Leg*> deferred_legs_;
  std::vector<Record*> deferred_records_;
  std::vector<LogSegment*> deferred_segments_;
};

/// While it lives, records and segments seen through slots stay valid memory.
class ReaderGuard {
 public:
  explicit ReaderGuard(EventLog& log) noexcept : log_(log) { log_.enter_reader(); }
  ~ReaderGuard() { log_.leave_reader(); }
  ReaderGuard(const ReaderGuard&) = delete;
  ReaderGuard& operator=(const ReaderGuard&) = delete;

 private:
  EventLog& log_;
};

}  // namespace abxbus::detail

#pragma once

#include "event/memory.hpp"

#include <abxbus/detail/record_head.hpp>
#include <abxbus/detail/value.hpp>
#include <abxbus/json_fwd.hpp>
#include <abxbus/uuid.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

/// The record of one event: one allocation with the header of four cache lines, the payload behind it.
///
///   line 0  handles, identity: written by emitters and evictors
///   line 1  the first leg: written by whoever runs it
///   line 2  times, options, waiters
///   line 3  the first handler run, so that an event with one handler costs one allocation
///
/// Lifetime: `refs` counts handles and one reference a leg, the bus's, which stands for queue and history together
/// (Leg::disposal). Reading a record through a history slot needs the bus's ReaderGuard (dispatch/event_log.hpp).
namespace abxbus::detail {

struct BusCore;
struct Entry;
struct Leg;
struct Waiter;

/// RecordHead::flags.
enum RecordFlag : std::uint32_t {
  flag_shared = 1U << 0,        ///< a second thread or bus may know the record: accept under ACCEPTING
  flag_accepting = 1U << 1,     ///< an emit of this event is in its critical section
  flag_blocking = 1U << 2,      ///< its parent waits for it (event_blocks_parent_completion)
  flag_completed = 1U << 3,     ///< results, status and completed_at are final
  flag_waiter_lock = 1U << 4,   ///< guards the waiter list
  flag_waiters = 1U << 5,       ///< the list was used
  flag_wants_first = 1U << 6,   ///< some waiter wants the first usable value
  flag_first_seen = 1U << 7,    ///< a now/wait with first_result returned normally (T-RES-23)
  flag_dropped = 1U << 8,       ///< no live bus will finish it (S-DST-7)
  flag_holds_parent = 1U << 9,  ///< completing owes the parent one hold
  flag_jumps = 1U << 10,        ///< some waiter wants to claim legs that are still to come (bus/jump.hpp)
  flag_cancelled = 1U << 11,    ///< the handler that waited for it was cut short: every leg is (bus/cancel.hpp)
};

/// Leg::state.
enum class LegState : std::uint32_t { queued, claimed, finished, dropped, side };

/// Why a run was cut short; the first reason stays.
enum class Cut : std::uint32_t { none, event_timeout, parent, first, destroy };

enum LegDisposal : std::uint32_t { leg_evicted = 1, leg_over = 2 };

/// One event on one bus.
struct alignas(16) Leg {
  BusCore* bus = nullptr;
  struct Record* record = nullptr;
  /// Acceptance order; appended under ACCEPTING (release), walked by anybody (acquire).
  std::atomic<Leg*> next{nullptr};
  std::uint64_t ticket = 0;
  /// For inspection; the claim itself is a bit of the log's slot. Release by the claimer, acquire by readers.
  std::atomic<LegState> state{LegState::queued};
  /// none -> reason by compare-exchange (seq_cst). Dekker with ExecSlot::word: a starter publishes RUNNING, then reads
  /// this; a cutter writes this, then looks for RUNNING slots.
  std::atomic<Cut> cut{Cut::none};
  /// Results of this bus, `result_count` of them; published with release when the run starts.
  std::atomic<struct HandlerRun*> results{nullptr};
  std::uint32_t result_count = 0;
  /// LegDisposal bits (acq_rel): who sets the second one releases the bus's reference.
  std::atomic<std::uint32_t> disposal{0};
  std::atomic<bool> slow_warned{false};
  bool parallel_mode = false;  ///< the lane starts it; written before publication
  /// Added to a history by hand: not one of the record's legs, and freed on its own. Written before publication.
  bool remembered = false;
};

enum class RunStatus : std::uint8_t { pending, started, completed, error };

/// One handler run; what EventResult shows.
struct HandlerRun {
  Entry* entry = nullptr;                   ///< one reference
  std::atomic<std::int64_t> started_at{0};  ///< 0: not yet
  std::atomic<std::int64_t> completed_at{0};
  Value value;  ///< final once `status` is terminal
  /// Terminal stores are release, reads acquire: a reader of a terminal status sees value and completed_at.
  std::atomic<RunStatus> status{RunStatus::pending};
  /// Effective timeout in microseconds, 0: none (T-TMO-12).
  std::atomic<std::uint32_t> timeout_us{0};

  bool terminal() const noexcept { return status.load(std::memory_order_acquire) >= RunStatus::completed; }
};
static_assert(sizeof(HandlerRun) == 64);

/// Options of an instance. Immutable once published; a change publishes a new block and keeps the old for readers.
struct OptionBlock {
  std::string event_type_text;  ///< unused unless the type was overridden
  std::optional<std::string> event_version;
  TypeDefaults fields;  ///< the seven options as resolved instance > type
  OptionBlock* previous = nullptr;
};

/// What few events have.
struct RareData {
  std::mutex mutex;  ///< guards lineage and views; no user code, no wait inside
  std::optional<Uuid> event_id;
  std::optional<Uuid> parent_id;
  Record* parent = nullptr;           ///< one reference, only while this event holds its parent
  Entry* emitter = nullptr;           ///< one reference: the handler that emitted it
  HandlerRun* emitter_run = nullptr;  ///< identity only
  struct Child {
    RecordPtr record;
    HandlerRun* emitter;
  };
  std::vector<Child> children;
  struct View {
    const EventTypeInfo* type;
    void* object;
  };
  std::vector<View> views;
  /// What the results of a cancelled event have as their cause; set before flag_cancelled.
  std::exception_ptr cancel_cause;
};

struct Record : RecordHead {
  // line 0
  /// Open legs plus open blocking children. Who brings it to 0 completes the event.
  std::atomic<std::uint32_t> holds;
  std::uint32_t charged;  ///< bytes charged at creation
  std::int64_t created_at;
  std::uint64_t salt;
  const TypeKey* key;
  /// Made by compare-exchange on first need (acq_rel), then constant.
  std::atomic<RareData*> rare;
  BusCore* account_bus;  ///< pays for the record: the first that accepted it

  // line 1
  alignas(64) Leg first_leg;

  // line 2
  /// 0: not yet. Release/acquire with the status getters.
  alignas(64) std::atomic<std::int64_t> started_at;
  std::atomic<std::int64_t> completed_at;
  std::atomic<OptionBlock*> options;
  /// Under flag_waiter_lock.
  Waiter* waiters;
  /// Last leg; under ACCEPTING.
  Leg* last_leg;
  /// Legs accepted, for has_leg checks without a walk; under ACCEPTING, read relaxed.
  std::atomic<std::uint32_t> leg_count;

  // line 3
  alignas(64) HandlerRun first_run;

  bool accepted() const noexcept { return leg_count.load(std::memory_order_acquire) != 0; }
  bool completed() const noexcept { return (flags.load(std::memory_order_acquire) & flag_completed) != 0; }
};
static_assert(sizeof(Record) == record_bytes);

inline Record* as_record(RecordHead* head) noexcept {
  return static_cast<Record*>(head);
}

RareData& rare_of(Record* record);
/// The instance's option fields, or the type's.
const TypeDefaults& option_fields(const Record* record) noexcept;
Uuid event_id_of(const Record* record) noexcept;
/// UUIDv7 of a result, derived from the event, the run's place and its creation.
Uuid result_id_of(const Record* record, const HandlerRun* run) noexcept;

/// Payload of `BaseEvent::make`.
struct UntypedPayload {
  json::ref value;
};
const EventTypeInfo& untyped_type() noexcept;
bool is_untyped(const Record* record) noexcept;

std::string_view type_name_of(const Record* record) noexcept;
std::string event_label_of(const Record* record);

/// An immortal name.
struct TypeKey {
  std::string name;
};

inline void release_record(Record* record) noexcept {
  release(static_cast<RecordHead*>(record));
}
/// One more reference unless the record is on its way out; only under a ReaderGuard.
bool try_retain(Record* record) noexcept;

/// Marks one of the two conditions of Leg::disposal; releases the bus's reference when it was the second.
void dispose_leg(Leg* leg, LegDisposal condition) noexcept;

// Defined by the bus layer, which knows what an entry and an account are.
void release_entry(Entry* entry) noexcept;
/// The same, collected by this thread while the entry stays the same: events of one handler are freed in rows, and the
/// count lies on a line that the runs of that handler use.
void release_entry_later(Entry* entry) noexcept;
/// Null bus: nobody pays. Taking the last event away may free the bus: its last touch.
void charge_bus(BusCore* bus, std::int64_t bytes, std::int64_t events) noexcept;

}  // namespace abxbus::detail

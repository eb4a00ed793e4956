#pragma once

#include "bus/reclaimer.hpp"
#include "bus/registry.hpp"
#include "dispatch/event_log.hpp"
#include "dispatch/job.hpp"
#include "dispatch/worker_pool.hpp"
#include "event/memory.hpp"
#include "event/record.hpp"

#include <abxbus/domain.hpp>
#include <abxbus/event_bus.hpp>
#include <abxbus/options.hpp>

#include <concurrentqueue.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

/// The state of one bus, and of a domain of buses.
namespace abxbus::detail {

struct BusCore;
struct Run;

/// A bus's event lock and drain cursor in one word (protocol in turn.hpp).
enum TurnOwner : std::uint64_t { turn_free = 0, turn_scheduled = 1, turn_held = 2 };
inline constexpr std::uint64_t turn_owner_mask = 3;
inline constexpr std::uint64_t turn_attention = 4;
inline constexpr std::uint64_t turn_cursor_one = 8;

/// The small queues of a bus hold few items at a time; small blocks keep an unused bus cheap.
struct ReadyQueueTraits : moodycamel::ConcurrentQueueDefaultTraits {
  static constexpr std::size_t BLOCK_SIZE = 16;
  static constexpr std::size_t EXPLICIT_INITIAL_INDEX_SIZE = 4;
  static constexpr std::size_t IMPLICIT_INITIAL_INDEX_SIZE = 4;
  static constexpr std::size_t INITIAL_IMPLICIT_PRODUCER_HASH_SIZE = 4;
};

/// Runnable work of one bus whose order is free: started parallel runs, helpers of a fan-out, handed-off nested runs,
/// resumed coroutines. Made on first use.
using ReadyQueue = moodycamel::ConcurrentQueue<Job*, ReadyQueueTraits>;

struct ExecutorState {
  explicit ExecutorState(ExecutorOptions options);
  ~ExecutorState();
  /// Immortal (a timer or a leaving thread may still name it); passed on to a later executor.
  WorkerPool* pool;
  std::uint32_t born;  ///< process generation
};

/// Registry of names and the `global-serial` lock.
struct DomainState {
  /// Names and list of live buses; no user code inside.
  std::mutex names_mutex;
  std::unordered_map<std::string, BusCore*> names;
  std::vector<BusCore*> live;

  /// The arbiter: everything contended about turns and the global lock of these buses. Short sections, no user code, no
  /// wait. The uncontended path (drain after drain, now() on a free bus) never takes it.
  std::mutex arbiter;
  BusCore* global_holder = nullptr;     ///< bus whose run holds the global lock, or that it is reserved for
  std::deque<BusCore*> global_waiters;  ///< heads of buses in arrival order
};

struct BusOptions {
  EventConcurrency event_concurrency;
  EventHandlerConcurrency handler_concurrency;
  EventHandlerCompletion handler_completion;
  std::int64_t event_timeout_ns;  ///< 0: none
  std::int64_t event_slow_ns;     ///< 0: none
  std::int64_t handler_slow_ns;   ///< 0: none
  std::int64_t destroy_grace_ns;
  std::int64_t inline_floor_ns;  ///< 0: never inline
  bool detect_file_paths;
  bool warn_on_duplicates;
};

inline constexpr std::uint64_t history_unlimited = ~std::uint64_t{0};

struct BusCore {
  BusCore(std::string_view name, const EventBusOptions& options);
  ~BusCore();
  BusCore(const BusCore&) = delete;
  BusCore& operator=(const BusCore&) = delete;
  static DomainState& state_of(const Domain& domain) noexcept { return *domain.state_; }

  // -- read-mostly ----------------------------------------------------------------------------------------------
  MemoryAccount memory;
  std::string name, id, label;
  BusOptions options;
  EventBusOptions shown;  ///< as given, for `options()`
  std::shared_ptr<DomainState> domain;
  std::shared_ptr<ExecutorState> executor;
  WorkerPool* pool;
  std::uint32_t born;  ///< process generation
  /// History settings; relaxed: a change counts from the next accepted emit or completion on.
  std::atomic<std::uint64_t> max_history{100};
  std::atomic<bool> history_drop{false};
  /// Owner plus EventBusRefs plus jobs in the pool. With live events it decides when the core goes (lifetime.cpp).
  std::atomic<std::uint32_t> refs{1};
  std::atomic<bool> destroyed{false};
  std::atomic<bool> destroy_cleared{false};
  std::atomic<bool> owner_gone{false};
  /// Some handler had a timeout of its own once; relaxed, sticky: inline execution then looks at each handler.
  std::shared_ptr<std::atomic<bool>> has_handler_timeouts = std::make_shared<std::atomic<bool>>(false);

  // -- the log and its words (own lines inside) ------------------------------------------------------------------
  EventLog log;

  // -- the turn: read by every emit, written when its owner changes and so not while a drain is busy ----------------
  alignas(64) std::atomic<std::uint64_t> turn{0};

  // -- what only the turn's holder writes ------------------------------------------------------------------------
  alignas(64) std::uint64_t cursor = 0;  ///< next ticket to look at
  std::uint64_t held_word = 0;           ///< holder: the turn word as taken
  /// Legs that the turn's holder has gone through; single writer. Read by the reclaimer and by idle checks.
  std::atomic<std::uint64_t> turn_epoch{0};
  std::atomic<std::uint64_t> done_turn{0};
  /// Snapshot cache of the holder: the last event's key and its handlers at a registry version.
  const TypeKey* cached_key = nullptr;
  std::uint64_t cached_version = 0;
  Entry* cached_single = nullptr;  ///< the only handler; null: none or several
  std::uint32_t cached_count = 0;
  /// References of `cached_single` taken in advance (credits), so that an event costs no read-modify-write for them.
  std::uint32_t credits = 0;
  Entry* credited = nullptr;

  // -- finishers beside the turn ---------------------------------------------------------------------------------
  alignas(64) std::atomic<std::uint64_t> done_side{0};
  /// Dekker with done_*: a finisher counts, then reads this; a waiter registers, then sums (seq_cst).
  std::atomic<std::uint32_t> idle_waiters{0};
  /// Futex word of the idle waiters.
  std::atomic<std::uint32_t> idle_signal{0};
  /// Completions have been in ticket order, so the emit of ticket t alone evicts t - N. Sticky; cleared only by
  /// EventLog::leave_ticket_order (seq_cst with the emitter's load: who reads true took its ticket before).
  std::atomic<bool> in_order{true};
  std::atomic<bool> drop_warned{false};
  /// A drain has met a long queue since the bus was last dry.
  std::atomic<bool> in_burst{false};
  /// max_history was set to 0 while completed events were kept: the next emit removes them (H-HIST-25).
  std::atomic<bool> zero_prune_pending{false};
  std::mutex trim_mutex;  ///< the exact trimming rule: one at a time; no user code inside
  std::vector<std::uint64_t> trim_open;
  std::uint64_t trim_scan = 0;
  /// Handlers of this bus that were cut short and still execute.
  std::atomic<std::uint32_t> abandoned{0};
  std::atomic<std::uint32_t> abandoned_signal{0};

  // -- the lane: starts parallel-mode events in acceptance order ---------------------------------------------------
  alignas(64) std::atomic<std::uint64_t> lane{0};

  // -- find waiters ------------------------------------------------------------------------------------------------
  /// Read by every emit behind the publication of its slot (seq_cst, Dekker), written only by finds.
  alignas(64) std::atomic<std::uint32_t> find_waiters{0};
  std::mutex find_mutex;  ///< list only
  std::vector<std::shared_ptr<struct FindWaiter>> find_list;

  // -- jobs --------------------------------------------------------------------------------------------------------
  struct BusJob : Job {
    BusCore* bus = nullptr;
  };
  alignas(64) BusJob drain_job;
  /// The drain job is in the inbox (exchange acq_rel by submitter and taker).
  std::atomic<bool> drain_queued{false};
  /// The turn was last given up by a now() that ran its event itself, with work left: its caller often comes back for
  /// the next one. A hint for whoever finds the drain: relaxed.
  std::atomic<bool> left_by_caller{false};
  alignas(64) BusJob pump_job;
  /// The pump is in the inbox. Dekker with ready_count: a pusher counts, then arms; a pump disarms, then counts.
  std::atomic<bool> pump_armed{false};
  std::atomic<std::uint32_t> ready_count{0};
  std::atomic<ReadyQueue*> ready{nullptr};

  // -- contended state, under the domain's arbiter ------------------------------------------------------------------
  std::uint32_t pause = 0;  ///< jump runs beside the turn
  bool closing = false;
  bool head_wait = false;       ///< the head waits for the global lock
  bool global_granted = false;  ///< the global lock is reserved for the head

  Registry registry;
  Reclaimer reclaimer;
};

inline bool turn_is_held(const BusCore& bus) noexcept {
  return (bus.turn.load(std::memory_order_seq_cst) & turn_owner_mask) == turn_held;
}

/// The process-wide pool.
WorkerPool& default_pool() noexcept;

// lifetime.cpp
void retain_core(BusCore* core) noexcept;
void release_core(BusCore* core) noexcept;
/// Throws EventBusDestroyedError when the bus is destroyed or was made before a fork.
void require_live(const BusCore* core, const char* operation);
[[noreturn]] void throw_destroyed(const BusCore* core, const char* operation);

/// Puts work whose order is free into the bus's queue and makes sure that a thread comes for it.
void push_ready(BusCore* bus, Job* job) noexcept;

}  // namespace abxbus::detail

#include "bus/lifetime.hpp"

#include "bus/completion.hpp"
#include "bus/emit.hpp"
#include "bus/history.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "bus/settle.hpp"
#include "bus/take.hpp"
#include "bus/turn.hpp"
#include "event/futex.hpp"
#include "event/log.hpp"
#include "event/names.hpp"
#include "event/process.hpp"

#include <abxbus/error.hpp>
#include <abxbus/memory.hpp>

#include <algorithm>
#include <cstdlib>

namespace abxbus::detail {

// -- executors and domains
// ------------------------------------------------------------------------------------------------

namespace {

/// Pools whose executors are gone. A thread on its way out or a timer may still name one, so it stays, and a later
/// executor of the same settings takes it over once its threads have left: a program that makes executors again and
/// again does not grow.
struct RetiredPools {
  std::mutex mutex;
  std::vector<std::pair<std::uint32_t, WorkerPool*>> pools;  ///< with the process generation they were made in
};

RetiredPools& retired_pools() {
  static auto* retired = new RetiredPools;
  return *retired;
}

WorkerPool* take_pool(const ExecutorOptions& options) {
  const std::int64_t floor = nanoseconds(options.inline_deadline_floor);
  RetiredPools& retired = retired_pools();
  {
    // Not waited for: in a forked child nobody may be there to unlock it.
    const std::unique_lock lock(retired.mutex, std::try_to_lock);
    if (lock) {
      const auto fitting = std::find_if(retired.pools.begin(), retired.pools.end(), [&](const auto& each) {
        return each.first == process_generation.load(std::memory_order_relaxed) && each.second->threads() == 0 &&
               each.second->wanted_workers() == options.workers && each.second->inline_floor_ns() == floor;
      });
      if (fitting != retired.pools.end()) {
        WorkerPool* const pool = fitting->second;
        retired.pools.erase(fitting);
        pool->revive();
        return pool;
      }
    }
  }
  return new WorkerPool(options.workers, floor);
}

}  // namespace

ExecutorState::ExecutorState(ExecutorOptions options)
    : pool(take_pool(options)), born(process_generation.load(std::memory_order_relaxed)) {
  watch_forks();
}
ExecutorState::~ExecutorState() {
  if (born != process_generation.load(std::memory_order_relaxed)) return;
  pool->retire();
  RetiredPools& retired = retired_pools();
  const std::lock_guard lock(retired.mutex);
  retired.pools.emplace_back(born, pool);
}

namespace {

int workers_from_environment() {
  const char* const text = std::getenv("ABXBUS_WORKERS");
  if (text == nullptr) return 0;
  const long workers = std::strtol(text, nullptr, 10);
  return workers > 0 && workers <= 512 ? static_cast<int>(workers) : 0;
}

/// Immortal objects of the process; replaced in a forked child, which has none of the threads.
struct ProcessState {
  std::shared_ptr<ExecutorState> executor =
      std::make_shared<ExecutorState>(ExecutorOptions{workers_from_environment()});
  std::shared_ptr<DomainState> domain = std::make_shared<DomainState>();
  std::uint32_t generation = process_generation.load(std::memory_order_relaxed);
};

ProcessState& process_state() {
  static std::mutex mutex;
  static std::atomic<ProcessState*> state{nullptr};
  ProcessState* now = state.load(std::memory_order_acquire);
  if (now != nullptr && now->generation == process_generation.load(std::memory_order_relaxed)) return *now;
  const std::lock_guard lock(mutex);
  now = state.load(std::memory_order_acquire);
  if (now == nullptr || now->generation != process_generation.load(std::memory_order_relaxed)) {
    now = new ProcessState;  // a former one stays as it is: its locks may be held by threads that do not exist here
    state.store(now, std::memory_order_release);
  }
  return *now;
}

}  // namespace

WorkerPool& default_pool() noexcept {
  return *process_state().executor->pool;
}

// -- cores that are over
// --------------------------------------------------------------------------------------------------

namespace {

struct Graveyard {
  std::mutex mutex;
  std::vector<BusCore*> all;  ///< every core, for total_live_bytes
};

Graveyard& graveyard() {
  static auto* yard = new Graveyard;
  return *yard;
}

bool is_over(const BusCore* core) noexcept {
  // Events first: who turns an event's hold into a reference raises `refs` before the event goes.
  return core->owner_gone.load(std::memory_order_seq_cst) && core->memory.events() == 0 &&
         core->refs.load(std::memory_order_seq_cst) == 0;
}

/// Frees the cores that nobody can reach any more.
void bury() noexcept {
  std::vector<BusCore*> gone;
  {
    Graveyard& yard = graveyard();
    const std::lock_guard lock(yard.mutex);
    const auto first = std::partition(yard.all.begin(), yard.all.end(), [](BusCore* core) { return !is_over(core); });
    gone.assign(first, yard.all.end());
    yard.all.erase(first, yard.all.end());
  }
  for (BusCore* core : gone) delete core;
}

std::int64_t option_ns(const std::optional<Seconds>& value, const char* name, double fallback_seconds) {
  if (!value) return nanoseconds(Seconds(fallback_seconds));
  if (!(value->count() >= 0)) throw ValidationError(std::string(name) + " must be >= 0 or null", name);
  return nanoseconds(*value);
}

std::string bus_id_of(const std::optional<std::string>& given) {
  return given ? Uuid::parse(*given).str() : Uuid::v7().str();
}

}  // namespace

void retain_core(BusCore* core) noexcept {
  core->refs.fetch_add(1, std::memory_order_relaxed);
}

void release_core(BusCore* core) noexcept {
  // The owner's reference is one of them: who brings the count to 0 does so behind the owner's end (seq_cst with
  // is_over).
  if (core->refs.fetch_sub(1, std::memory_order_seq_cst) == 1) bury();
}

void charge_bus(BusCore* bus, std::int64_t bytes, std::int64_t events) noexcept {
  if (bus == nullptr) return;
  const bool ending =
      events < 0 && bus->destroyed.load(std::memory_order_seq_cst) && bus->owner_gone.load(std::memory_order_seq_cst);
  bus->memory.charge(bytes, events);
  if (ending) bury();
}

void throw_destroyed(const BusCore* core, const char* operation) {
  throw EventBusDestroyedError(core->name, core->id, core->label, operation);
}

void require_live(const BusCore* core, const char* operation) {
  if (core->destroyed.load(std::memory_order_acquire) ||
      core->born != process_generation.load(std::memory_order_relaxed))
    throw_destroyed(core, operation);
}

BusCore::BusCore(std::string_view wanted_name, const EventBusOptions& given)
    : id(bus_id_of(given.id)),
      domain(given.domain.state_),
      executor(given.executor.state_),
      pool(executor->pool),
      born(process_generation.load(std::memory_order_relaxed)),
      max_history(given.max_history_size ? *given.max_history_size : history_unlimited),
      history_drop(given.max_history_drop),
      log(memory),
      registry(*this),
      reclaimer(*this) {
  options.event_concurrency = given.event_concurrency;
  options.handler_concurrency = given.event_handler_concurrency;
  options.handler_completion = given.event_handler_completion;
  options.event_timeout_ns = option_ns(given.event_timeout, "event_timeout", 60);
  options.event_slow_ns = option_ns(given.event_slow_timeout, "event_slow_timeout", 300);
  options.handler_slow_ns = option_ns(given.event_handler_slow_timeout, "event_handler_slow_timeout", 30);
  options.destroy_grace_ns = option_ns(given.destroy_grace, "destroy_grace", 5);
  options.inline_floor_ns = given.inline_deadline_floor
                                ? option_ns(given.inline_deadline_floor, "inline_deadline_floor", 10)
                                : pool->inline_floor_ns();
  options.detect_file_paths = given.event_handler_detect_file_paths;
  options.warn_on_duplicates = given.warn_on_duplicate_handler_names;
  shown = given;
  drain_job.bus = this;
  drain_job.run = &drain;
  drain_job.look = &look_at_drain;
  drain_job.let_go = &let_go_of_drain;
  if (wanted_name.empty()) {
    name = "EventBus_" + id.substr(id.size() - 8);
  } else {
    check_bus_name(wanted_name);
    name = wanted_name;
  }
}

BusCore::~BusCore() {
  return_credits(this);
  delete ready.load(std::memory_order_relaxed);
}

BusCore* create_core(std::string_view name, const EventBusOptions& options) {
  watch_forks();
  auto core = std::make_unique<BusCore>(name, options);
  const std::string wanted = core->name;
  bool renamed = false;
  {
    DomainState& domain = *core->domain;
    const std::lock_guard lock(domain.names_mutex);
    if (domain.names.contains(wanted)) {
      renamed = true;
      const std::string base = wanted + "_" + core->id.substr(core->id.size() - 8);
      core->name = base;
      for (int i = 2; domain.names.contains(core->name); ++i) core->name = base + "_" + std::to_string(i);
    }
    core->label = bus_label(core->name, core->id);
    domain.names.emplace(core->name, core.get());
    domain.live.push_back(core.get());
  }
  {
    Graveyard& yard = graveyard();
    const std::lock_guard lock(yard.mutex);
    yard.all.push_back(core.get());
  }
  if (renamed)
    log(LogLevel::warning,
        "EventBus with name \"" + wanted + "\" already exists; the new bus is named \"" + core->name + "\"");
  return core.release();
}

std::vector<BusCore*> live_buses(DomainState& domain) {
  const std::lock_guard lock(domain.names_mutex);
  std::vector<BusCore*> buses = domain.live;
  for (BusCore* bus : buses) retain_core(bus);
  return buses;
}

// -- the end of a bus
// -----------------------------------------------------------------------------------------------------

namespace {

/// Takes the bus out of the registry of names; true for the call that did it.
bool leave_domain(BusCore* core) noexcept {
  DomainState& domain = *core->domain;
  const std::lock_guard lock(domain.names_mutex);
  const auto named = domain.names.find(core->name);
  if (named == domain.names.end() || named->second != core) return false;
  domain.names.erase(named);
  std::erase(domain.live, core);
  return true;
}

/// Drops what is queued and cuts short what runs (S-DST-7..9).
void end_work(BusCore* core) noexcept {
  struct Found {
    RecordPtr record;
    Leg* leg;
    bool dropped;  ///< by this call; else an emitter that met the destroy may be dropping it
  };
  std::vector<Found> legs;
  {
    const ReaderGuard guard(core->log);
    const std::uint64_t tail = core->log.issued();
    for (LogSegment* segment = core->log.first(); segment != nullptr;
         segment = segment->next.load(std::memory_order_acquire)) {
      for (std::uint64_t i = 0; i < segment_slots && segment->number * segment_slots + i < tail; ++i) {
        std::atomic<std::uintptr_t>& slot = segment->slots[i];
        const std::uintptr_t value = slot.load(std::memory_order_seq_cst);
        Leg* const leg = EventLog::leg_of(value);
        if (leg == nullptr) continue;                                             // its emitter drops it itself
        if ((value & slot_unlisted) != 0 && (value & slot_spent) != 0) continue;  // may be gone; if it runs, see below
        if (!try_retain(leg->record)) continue;
        const bool dropped = (value & slot_spent) == 0 && claim_slot(slot);
        legs.push_back({RecordPtr(static_cast<RecordHead*>(leg->record)), leg, dropped});
        if (dropped) leg->state.store(LegState::dropped, std::memory_order_release);
      }
    }
  }
  for (const auto& [record, leg, dropped] : legs) {
    if (dropped) {
      drop_leg(leg);
      continue;
    }
    switch (leg->state.load(std::memory_order_acquire)) {
      case LegState::queued:
      case LegState::claimed:
        if (begin_cut(leg, Cut::destroy) || leg->cut.load(std::memory_order_acquire) != Cut::none)
          take_running(leg, Cut::destroy, current_frame);
        break;
      case LegState::dropped:
      case LegState::finished:
      case LegState::side:
        break;
    }
  }
}

}  // namespace

void destroy_bus(BusCore* core, bool clear) noexcept {
  if (core->born != process_generation.load(std::memory_order_relaxed)) {
    core->destroyed.store(true, std::memory_order_seq_cst);  // made before a fork: nothing of it may be touched
    return;
  }
  const bool first = core->log.close();
  core->destroyed.store(true, std::memory_order_seq_cst);
  if (first) {
    close_turn(core);
    leave_domain(core);
    end_finders(core);
    end_work(core);
    // Whatever else runs here and is not on the calling chain: the log may have forgotten its event.
    take_running_on(core, Cut::destroy, current_frame);
    core->idle_signal.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(core->idle_signal, INT32_MAX);
  }
  if (clear && !core->destroy_cleared.exchange(true, std::memory_order_acq_rel)) {
    core->registry.clear();
    clear_history(core);
  }
}

void close_owner(BusCore* core) noexcept {
  destroy_bus(core, true);
  if (core->born != process_generation.load(std::memory_order_relaxed)) return;
  core->owner_gone.store(true, std::memory_order_seq_cst);
  // Handlers of this bus that still execute, except those on the calling chain: they were not taken.
  const std::int64_t grace = core->options.destroy_grace_ns;
  if (grace != 0) {
    const WaitScope blocked;
    wait_for_takers(core);
  }
  if (grace != 0 && core->abandoned.load(std::memory_order_seq_cst) != 0) {
    const std::int64_t deadline = grace >= INT64_MAX / 2 ? no_deadline : steady_ns() + grace;
    const WaitScope blocked;
    for (;;) {
      const std::uint32_t signal = core->abandoned_signal.load(std::memory_order_acquire);
      const std::uint32_t own = stale_frames_of(core);
      if (core->abandoned.load(std::memory_order_seq_cst) <= own) break;
      if (deadline != no_deadline && steady_ns() >= deadline) {
        log(LogLevel::error, "EventBus " + core->label + " was destroyed while handlers were still executing after " +
                                 seconds_text(Seconds(static_cast<double>(grace) / 1e9)) + "s; they are left behind");
        break;
      }
      futex_wait(core->abandoned_signal, signal, deadline);
    }
  }
  core->reclaimer.collect();
  release_core(core);
  bury();
}

}  // namespace abxbus::detail

namespace abxbus {

std::int64_t total_live_bytes() noexcept {
  detail::bury();
  detail::Graveyard& yard = detail::graveyard();
  const std::lock_guard lock(yard.mutex);
  std::int64_t sum = 0;
  for (const detail::BusCore* core : yard.all) sum += core->memory.bytes();
  return sum;
}

Domain::Domain() : state_(std::make_shared<detail::DomainState>()) {}
Domain Domain::default_domain() {
  return Domain(detail::process_state().domain);
}

Executor::Executor(ExecutorOptions options) {
  if (options.workers < 0 || options.workers > 512)
    throw ValidationError("workers must be between 0 and 512", "workers");
  if (!(options.inline_deadline_floor.count() >= 0))
    throw ValidationError("inline_deadline_floor must be >= 0 or null", "inline_deadline_floor");
  state_ = std::make_shared<detail::ExecutorState>(options);
}
Executor Executor::default_executor() {
  return Executor(detail::process_state().executor);
}
int Executor::workers() const noexcept {
  return state_->pool->workers();
}

}  // namespace abxbus

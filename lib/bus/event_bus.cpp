#include "bus/completion.hpp"
#include "bus/emit.hpp"
#include "bus/history.hpp"
#include "bus/lifetime.hpp"
#include "bus/resolve.hpp"
#include "bus/turn.hpp"
#include "bus/waiting.hpp"
#include "event/burst.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/log.hpp"
#include "event/names.hpp"
#include "event/process.hpp"
#include "event/text_forms.hpp"

#include <abxbus/error.hpp>
#include <abxbus/event_bus.hpp>

#include <cmath>
#include <limits>

/// EventBus and EventBusRef: the public operations, forwarded to the parts.
namespace abxbus {

namespace detail {

namespace {

double seconds_or_nan(const std::optional<Seconds>& value, const char* name) {
  if (!value) return std::numeric_limits<double>::quiet_NaN();
  if (!(value->count() >= 0)) throw ValidationError(std::string(name) + " must be >= 0 or null", name);
  return value->count();
}

const TypeKey* registration_key(std::string_view key) {
  if (key.empty()) throw ValidationError("event pattern must not be empty", "event_pattern");
  if (key != "*") check_event_type(key);
  return intern_type(key);
}

/// A pattern that names no key is unknown, not wrong: `off` ignores it.
const TypeKey* known_key(std::string_view key) {
  return intern_type(key);
}

}  // namespace

EventHandler register_handler(BusCore* core, std::string_view key, const EventTypeInfo*, Callable callable,
                              HandlerOptions&& options, const std::source_location& where) {
  require_live(core, "on");
  const TypeKey* const type_key = registration_key(key);
  if (!callable) throw ValidationError("handler must be callable", "handler");
  auto entry = std::make_unique<Entry>();
  entry->timeout.store(seconds_or_nan(options.handler_timeout, "handler_timeout"), std::memory_order_relaxed);
  entry->slow_timeout.store(seconds_or_nan(options.handler_slow_timeout, "handler_slow_timeout"),
                            std::memory_order_relaxed);
  entry->owner_flags = core->has_handler_timeouts;
  if (options.handler_timeout) entry->owner_flags->store(true, std::memory_order_relaxed);
  entry->forwarder = callable.is_forwarder();
  entry->callable = std::move(callable);
  entry->time_given = options.handler_registered_at.has_value();
  entry->registered_at = entry->time_given ? to_ns(*options.handler_registered_at) : now_ns();
  entry->key = type_key;
  entry->owner = core;
  entry->where = where;
  entry->detect_path = core->options.detect_file_paths && options.handler_file_path.empty();
  entry->explicit_id = std::move(options.id);
  entry->name = std::move(options.handler_name);
  entry->file_path = std::move(options.handler_file_path);
  entry->bus_id = core->id;
  entry->bus_name = core->name;
  return EventHandler(core->registry.add(type_key, std::move(entry), core->options.warn_on_duplicates));
}

void off_key(BusCore* core, std::string_view key) {
  require_live(core, "off");
  core->registry.remove_key(known_key(key));
}
void off_entry(BusCore* core, std::string_view key, const EventHandler& handler) {
  require_live(core, "off");
  if (!handler) return;
  core->registry.remove(key.empty() ? nullptr : known_key(key), handler.entry());
}
void off_id(BusCore* core, std::string_view key, std::string_view id) {
  require_live(core, "off");
  core->registry.remove_id(known_key(key), id);
}
void off_identity(BusCore* core, std::string_view key, const void* identity) {
  require_live(core, "off");
  core->registry.remove_identity(known_key(key), identity);
}

}  // namespace detail

using namespace detail;

// -- handles
// ------------------------------------------------------------------------------------------------------------

EventHandler::EventHandler(const EventHandler& other) noexcept : entry_(other.entry_) {
  if (entry_ != nullptr) retain_entry(entry_);
}
EventHandler::~EventHandler() {
  if (entry_ != nullptr) release_entry(entry_);
}
std::string EventHandler::id() const {
  return entry_id(*entry_);
}
std::string EventHandler::handler_name() const {
  return std::string(entry_name(*entry_));
}
std::optional<std::string> EventHandler::handler_file_path() const {
  std::string path = entry_file_path(*entry_);
  if (path.empty()) return std::nullopt;
  return path;
}
std::optional<Seconds> EventHandler::handler_timeout() const noexcept {
  return entry_timeout(*entry_);
}
std::optional<Seconds> EventHandler::handler_slow_timeout() const noexcept {
  return entry_slow_timeout(*entry_);
}
Timestamp EventHandler::handler_registered_at() const noexcept {
  return to_timestamp(entry_->registered_at);
}
std::string EventHandler::event_pattern() const {
  return entry_->key->name;
}
std::string EventHandler::eventbus_name() const {
  return entry_->bus_name;
}
std::string EventHandler::eventbus_id() const {
  return entry_->bus_id;
}
std::string EventHandler::label() const {
  return entry_label(*entry_);
}
void EventHandler::set_handler_timeout(std::optional<Seconds> value) const {
  const double seconds = seconds_or_nan(value, "handler_timeout");
  if (value) entry_->owner_flags->store(true, std::memory_order_relaxed);
  entry_->timeout.store(seconds, std::memory_order_relaxed);
}
void EventHandler::set_handler_slow_timeout(std::optional<Seconds> value) const {
  entry_->slow_timeout.store(seconds_or_nan(value, "handler_slow_timeout"), std::memory_order_relaxed);
}

EventBusRef::EventBusRef(const EventBusRef& other) noexcept : core_(other.core_) {
  if (core_ != nullptr) retain_core(core_);
}
EventBusRef::~EventBusRef() {
  if (core_ != nullptr) release_core(core_);
}

EventBus::EventBus(std::string_view name, EventBusOptions options) : EventBusRef(create_core(name, options)) {}
EventBus& EventBus::operator=(EventBus&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) close_owner(core_);
    core_ = std::exchange(other.core_, nullptr);
  }
  return *this;
}
EventBus::~EventBus() {
  if (core_ != nullptr) close_owner(std::exchange(core_, nullptr));
}

std::vector<EventBusRef> EventBus::all_instances(Domain domain) {
  std::vector<EventBusRef> buses;
  for (BusCore* core : live_buses(BusCore::state_of(domain))) buses.emplace_back(core);
  return buses;
}

ScopedHandler::~ScopedHandler() {
  if (!handler_) return;
  try {
    bus_.off(handler_);
  } catch (const EventBusDestroyedError&) {
    // The bus and its handlers are gone already.
  }
}

// -- operations
// -----------------------------------------------------------------------------------------------------------

namespace {

/// The bus is idle: what a burst took may go back, of this thread at once.
void end_burst(BusCore* bus) noexcept {
  note_if_burst_over(bus);
  give_back_burst();
}

}  // namespace

bool EventBusRef::wait_until_idle(std::optional<Seconds> timeout, std::stop_token stop) const {
  require_live(core_, "wait_until_idle");
  if (caller_is_stale()) throw OperationCancelled("wait_until_idle was called by a handler that was cut short");
  if (bus_is_idle(core_)) {
    end_burst(core_);
    return true;
  }
  WaitOptions options;
  if (timeout && timeout->count() > 0) options.timeout = timeout;
  const std::int64_t deadline = wait_deadline(options);
  std::atomic<bool> cancelled{false};
  bool idle = false;
  {
    core_->idle_waiters.fetch_add(1, std::memory_order_seq_cst);
    const CallCancellation cancellation(stop, [&] {
      cancelled.store(true, std::memory_order_release);
      core_->idle_signal.fetch_add(1, std::memory_order_seq_cst);
      futex_wake(core_->idle_signal, INT32_MAX);
    });
    const WaitScope blocked;
    for (;;) {
      const std::uint32_t signal = core_->idle_signal.load(std::memory_order_seq_cst);
      idle = bus_is_idle(core_);
      if (idle || cancelled.load(std::memory_order_acquire)) break;
      if (deadline != no_deadline && steady_ns() >= deadline) break;
      futex_wait(core_->idle_signal, signal, deadline);
    }
    core_->idle_waiters.fetch_sub(1, std::memory_order_seq_cst);
  }
  // Stopped first: that the calling handler was cut short may be what made the bus idle.
  if (cancelled.load(std::memory_order_acquire)) throw OperationCancelled("wait_until_idle was stopped");
  if (idle) {
    end_burst(core_);
    return true;
  }
  log(LogLevel::warning,
      "Timeout waiting for event bus to be idle after " + seconds_text(*options.timeout) + "s: " + core_->label);
  return false;
}

bool EventBusRef::is_idle_and_queue_empty() const noexcept {
  return bus_is_idle(core_);
}

bool EventBusRef::is_idle() const {
  for (const RecordPtr& record : listed_events(core_)) {
    for (const Leg* leg = &as_record(record.get())->first_leg; leg != nullptr;
         leg = leg->next.load(std::memory_order_acquire)) {
      if (leg->bus != core_) continue;
      const HandlerRun* const results = leg->results.load(std::memory_order_acquire);
      for (std::uint32_t i = 0; results != nullptr && i < leg->result_count; ++i)
        if (!results[i].terminal()) return false;
    }
  }
  return true;
}

void EventBusRef::destroy(bool clear) const noexcept {
  destroy_bus(core_, clear);
}
bool EventBusRef::is_destroyed() const noexcept {
  return core_->destroyed.load(std::memory_order_acquire) ||
         core_->born != process_generation.load(std::memory_order_relaxed);
}

// -- inspection
// -----------------------------------------------------------------------------------------------------------

const std::string& EventBusRef::name() const noexcept {
  return core_->name;
}
const std::string& EventBusRef::id() const noexcept {
  return core_->id;
}
const std::string& EventBusRef::label() const noexcept {
  return core_->label;
}

EventBusOptions EventBusRef::options() const {
  EventBusOptions options = core_->shown;
  options.id = core_->id;
  options.event_timeout = options.event_timeout.value_or(Seconds(60));
  options.event_slow_timeout = options.event_slow_timeout.value_or(Seconds(300));
  options.event_handler_slow_timeout = options.event_handler_slow_timeout.value_or(Seconds(30));
  options.destroy_grace = options.destroy_grace.value_or(Seconds(5));
  if (!options.inline_deadline_floor)
    options.inline_deadline_floor = Seconds(static_cast<double>(core_->options.inline_floor_ns) / 1e9);
  const std::uint64_t limit = core_->max_history.load(std::memory_order_relaxed);
  options.max_history_size =
      limit == history_unlimited ? std::nullopt : std::optional<std::size_t>(static_cast<std::size_t>(limit));
  options.max_history_drop = core_->history_drop.load(std::memory_order_relaxed);
  return options;
}

EventHistory EventBusRef::event_history() const {
  return EventHistory(bus_history(core_));
}

std::vector<Uuid> EventBusRef::pending_event_queue() const {
  std::vector<Uuid> ids;
  const ReaderGuard guard(core_->log);
  const std::uint64_t issued = core_->log.issued();
  for (LogSegment* segment = core_->log.first(); segment != nullptr;
       segment = segment->next.load(std::memory_order_acquire)) {
    for (auto& slot : segment->slots) {
      const std::uintptr_t value = slot.load(std::memory_order_seq_cst);
      Leg* const leg = EventLog::leg_of(value);
      if (leg != nullptr && (value & slot_spent) == 0 && segment->number * segment_slots < issued)
        ids.push_back(event_id_of(leg->record));
    }
  }
  return ids;
}

std::vector<EventHandler> EventBusRef::handlers() const {
  std::vector<EventHandler> handlers;
  for (Entry* entry : core_->registry.all()) handlers.emplace_back(entry);
  return handlers;
}
std::optional<EventHandler> EventBusRef::handler(std::string_view id) const {
  Entry* const entry = core_->registry.by_id(id);
  if (entry == nullptr) return std::nullopt;
  return EventHandler(entry);
}
std::vector<std::pair<std::string, std::vector<std::string>>> EventBusRef::handlers_by_key() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> keys;
  for (auto& [key, entries] : core_->registry.by_key()) {
    std::vector<std::string> ids;
    for (Entry* entry : entries) ids.push_back(EventHandler(entry).id());
    keys.emplace_back(key, std::move(ids));
  }
  return keys;
}
std::size_t EventBusRef::handler_count() const noexcept {
  return core_->registry.count();
}

namespace {
std::vector<BaseEvent> events_of(BusCore* core, EventStatus status) {
  std::vector<BaseEvent> events;
  for (RecordPtr& record : listed_events(core)) {
    BaseEvent event(std::move(record));
    if (event.event_status() == status) events.push_back(std::move(event));
  }
  return events;
}
}  // namespace

std::vector<BaseEvent> EventBusRef::events_pending() const {
  return events_of(core_, EventStatus::pending);
}
std::vector<BaseEvent> EventBusRef::events_started() const {
  return events_of(core_, EventStatus::started);
}
std::vector<BaseEvent> EventBusRef::events_completed() const {
  return events_of(core_, EventStatus::completed);
}
std::size_t EventBusRef::find_waiter_count() const noexcept {
  return core_->find_waiters.load(std::memory_order_acquire);
}
EventLock EventBusRef::resolve_event_lock(const BaseEvent& event) const {
  switch (resolve_concurrency(as_record(event.record()), core_)) {
    case EventConcurrency::global_serial:
      return EventLock::global;
    case EventConcurrency::bus_serial:
      return EventLock::bus;
    case EventConcurrency::parallel:
      break;
  }
  return EventLock::none;
}
MemoryUse EventBusRef::memory() const noexcept {
  MemoryUse use;
  use.live_bytes = core_->memory.sample_peak();
  use.live_events = core_->memory.events();
  use.peak_bytes = core_->memory.peak();
  if (use.live_events > 0)
    use.bytes_per_event = static_cast<double>(use.live_bytes) / static_cast<double>(use.live_events);
  return use;
}

}  // namespace abxbus

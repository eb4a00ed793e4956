#include "bus/core.hpp"
#include "bus/run.hpp"
#include "event/log.hpp"
#include "event/names.hpp"
#include "event/record.hpp"
#include "event/text_forms.hpp"

#include <abxbus/error.hpp>
#include <abxbus/event.hpp>
#include <abxbus/event_bus.hpp>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <new>

/// BaseEvent's getters and setters, instance options, and payload views.
namespace abxbus {

namespace detail {

namespace {

void check_duration(const std::optional<Seconds>& value, const char* name) {
  if (value && !(value->count() >= 0)) throw ValidationError(std::string(name) + " must be >= 0 or null", name);
}

/// Publishes a changed copy of the option block; readers of the old one keep it until the event goes.
template <class F>
void change_options(Record* record, F&& change) {
  auto fresh = std::make_unique<OptionBlock>();
  OptionBlock* before = record->options.load(std::memory_order_acquire);
  for (;;) {
    if (before != nullptr) {
      fresh->event_version = before->event_version;
      fresh->fields = before->fields;
    } else {
      fresh->fields = *record->type->defaults;
    }
    fresh->previous = before;
    change(*fresh);
    if (record->options.compare_exchange_weak(before, fresh.get(), std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
      static_cast<void>(fresh.release());
      return;
    }
  }
}

template <class V>
void prefer(std::optional<V>& field, const std::optional<V>& given) {
  if (given) field = given;
}

}  // namespace

void apply_options(RecordHead* head, const EventOptions& options) {
  Record* const record = as_record(head);
  check_duration(options.event_timeout, "event_timeout");
  check_duration(options.event_slow_timeout, "event_slow_timeout");
  check_duration(options.event_handler_timeout, "event_handler_timeout");
  check_duration(options.event_handler_slow_timeout, "event_handler_slow_timeout");
  if (!options.event_type.empty()) {
    check_event_type(options.event_type);
    record->key = intern_type(options.event_type);
  }
  const bool changes = !options.event_version.empty() || options.event_timeout || options.event_slow_timeout ||
                       options.event_concurrency || options.event_handler_timeout ||
                       options.event_handler_slow_timeout || options.event_handler_concurrency ||
                       options.event_handler_completion;
  if (changes) {
    change_options(record, [&](OptionBlock& block) {
      if (!options.event_version.empty()) block.event_version = options.event_version;
      prefer(block.fields.event_timeout, options.event_timeout);
      prefer(block.fields.event_slow_timeout, options.event_slow_timeout);
      prefer(block.fields.event_concurrency, options.event_concurrency);
      prefer(block.fields.event_handler_timeout, options.event_handler_timeout);
      prefer(block.fields.event_handler_slow_timeout, options.event_handler_slow_timeout);
      prefer(block.fields.event_handler_concurrency, options.event_handler_concurrency);
      prefer(block.fields.event_handler_completion, options.event_handler_completion);
    });
  }
  if (options.event_blocks_parent_completion) record->flags.fetch_or(flag_blocking, std::memory_order_relaxed);
  if (options.event_created_at) record->created_at = to_ns(*options.event_created_at);
  if (options.event_id || options.event_parent_id) {
    RareData& rare = rare_of(record);
    if (options.event_id) rare.event_id = options.event_id;
    if (options.event_parent_id) rare.parent_id = options.event_parent_id;
  }
  // The id is derived from the moment of creation unless one was given; a given time must not change it into one of
  // another event's.
  if (options.event_created_at && !options.event_id) {
    RareData& rare = rare_of(record);
    if (!rare.event_id) rare.event_id = Uuid::v7();
  }
}

namespace {

/// The payload as JSON, encoded if it is a C++ object.
json::ref payload_json(Record* record) {
  if (is_untyped(record)) {
    const json::ref& value = static_cast<const UntypedPayload*>(payload_of(record))->value;
    if (value) return value;
    return {boost::json::object()};
  }
  if (record->type->encode == nullptr)
    throw ValidationError("the payload of " + std::string(record->type->event_type) + " has no JSON form", "$");
  codec::Writer writer;
  record->type->encode(payload_of(record), writer);
  return {writer.take()};
}

}  // namespace

const void* decoded_view(RecordHead* head, const EventTypeInfo& wanted) {
  Record* const record = as_record(head);
  RareData& rare = rare_of(record);
  {
    const std::lock_guard lock(rare.mutex);
    for (const RareData::View& view : rare.views)
      if (*view.type->type == *wanted.type) return view.object;
  }
  if (wanted.decode == nullptr)
    throw ValidationError("the payload of " + std::string(type_name_of(record)) + " is no " +
                              std::string(wanted.event_type) + ", which has no JSON form to be read from",
                          "$");
  const json::ref document = payload_json(record);
  void* const object = allocate(wanted.size);
  try {
    wanted.decode(codec::Reader(document.get()), object);
  } catch (...) {
    deallocate(object);
    throw;
  }
  void* loser = nullptr;
  const void* result = object;
  {
    const std::lock_guard lock(rare.mutex);
    for (const RareData::View& view : rare.views) {
      if (*view.type->type != *wanted.type) continue;
      loser = object;
      result = view.object;
      break;
    }
    if (loser == nullptr) rare.views.push_back({&wanted, object});
  }
  if (loser != nullptr) {
    if (wanted.destroy != nullptr) wanted.destroy(loser);
    deallocate(loser);
  }
  return result;
}

bool payload_decodes(RecordHead* head, const EventTypeInfo& wanted) noexcept {
  if (as_record(head)->key->name != wanted.event_type) return false;
  if (*head->type->type == *wanted.type) return true;
  try {
    decoded_view(head, wanted);
    return true;
  } catch (...) {
    return false;
  }
}

void Invocation::reject_payload(const ValidationError& reason) {
  const Record* const record = as_record(record_);
  const ExecFrame* const frame = current_frame;
  EventHandlerErrorInfo info;
  info.event_id = event_id_of(record);
  info.event_type = type_name_of(record);
  info.event_timeout = option_fields(record).event_timeout;
  info.cause = std::make_exception_ptr(reason);
  if (frame != nullptr) {
    info.event_result_id = result_id_of(record, frame->result);
    info.handler_id = entry_id(*frame->result->entry);
    info.handler_name = entry_name(*frame->result->entry);
  }
  result = Value::make(std::make_exception_ptr(EventHandlerPayloadSchemaError(
                           "Event payload of " + event_label_of(record) + " does not fit the handler: " + reason.what(),
                           std::move(info))),
                       ValueKind::error);
}

void* allocate_value(std::size_t bytes) {
  // In front of the value: who pays for it. The bus is alive as long as one of its events is, and the value belongs to
  // an event of it.
  constexpr std::size_t front = 16;
  auto* const block = static_cast<std::byte*>(allocate(bytes + front));
  BusCore* const bus = current_frame != nullptr ? current_frame->bus : nullptr;
  *reinterpret_cast<BusCore**>(block) = bus;
  charge_bus(bus, static_cast<std::int64_t>(usable_bytes(block)), 0);
  return block + front;
}

void free_value(void* value) noexcept {
  constexpr std::size_t front = 16;
  auto* const block = static_cast<std::byte*>(value) - front;
  BusCore* const bus = *reinterpret_cast<BusCore**>(block);
  const auto bytes = static_cast<std::int64_t>(usable_bytes(block));
  deallocate(block);
  charge_bus(bus, -bytes, 0);
}

}  // namespace detail

using namespace detail;

BaseEvent BaseEvent::make(std::string_view event_type, json::ref payload, EventOptions options) {
  check_event_type(event_type);
  if (payload) {
    const boost::json::value& document = payload.get();
    if (!document.is_object()) throw ValidationError("the payload of an event is a JSON object", "payload");
    for (const auto& member : document.get_object()) {
      const std::string_view name(member.key().data(), member.key().size());
      if (name.starts_with("event_")) throw ValidationError("reserved payload field name: " + std::string(name), name);
    }
  }
  RecordHead* const record = new_record(untyped_type());
  ::new (payload_of(record)) UntypedPayload{std::move(payload)};
  BaseEvent event{RecordPtr(record)};
  as_record(record)->key = intern_type(event_type);
  apply_options(record, options);
  return event;
}

std::string BaseEvent::event_type() const {
  return std::string(type_name_of(as_record(record_.get())));
}
std::string BaseEvent::event_version() const {
  const Record* const record = as_record(record_.get());
  if (const OptionBlock* block = record->options.load(std::memory_order_acquire); block && block->event_version)
    return *block->event_version;
  return std::string(record->type->defaults->event_version);
}
std::optional<Seconds> BaseEvent::event_timeout() const {
  return option_fields(as_record(record_.get())).event_timeout;
}
std::optional<Seconds> BaseEvent::event_slow_timeout() const {
  return option_fields(as_record(record_.get())).event_slow_timeout;
}
std::optional<EventConcurrency> BaseEvent::event_concurrency() const {
  return option_fields(as_record(record_.get())).event_concurrency;
}
std::optional<Seconds> BaseEvent::event_handler_timeout() const {
  return option_fields(as_record(record_.get())).event_handler_timeout;
}
std::optional<Seconds> BaseEvent::event_handler_slow_timeout() const {
  return option_fields(as_record(record_.get())).event_handler_slow_timeout;
}
std::optional<EventHandlerConcurrency> BaseEvent::event_handler_concurrency() const {
  return option_fields(as_record(record_.get())).event_handler_concurrency;
}
std::optional<EventHandlerCompletion> BaseEvent::event_handler_completion() const {
  return option_fields(as_record(record_.get())).event_handler_completion;
}
bool BaseEvent::event_blocks_parent_completion() const noexcept {
  return (record_.get()->flags.load(std::memory_order_acquire) & flag_blocking) != 0;
}
Uuid BaseEvent::event_id() const noexcept {
  return event_id_of(as_record(record_.get()));
}

std::vector<std::string> BaseEvent::event_path() const {
  std::vector<std::string> path;
  const Record* const record = as_record(record_.get());
  if (!record->accepted()) return path;
  for (const Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire))
    path.push_back(leg->bus->label);
  return path;
}
std::optional<Uuid> BaseEvent::event_parent_id() const noexcept {
  RareData* const rare = as_record(record_.get())->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return std::nullopt;
  const std::lock_guard lock(rare->mutex);
  return rare->parent_id;
}
std::optional<std::string> BaseEvent::event_emitted_by_handler_id() const {
  RareData* const rare = as_record(record_.get())->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return std::nullopt;
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(rare->mutex);
    entry = rare->emitter;
  }
  if (entry == nullptr) return std::nullopt;
  return entry_id(*entry);
}
std::size_t BaseEvent::event_pending_bus_count() const noexcept {
  const Record* const record = as_record(record_.get());
  if (!record->accepted() || record->completed()) return 0;
  std::size_t count = 0;
  for (const Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    const LegState state = leg->state.load(std::memory_order_acquire);
    count += state == LegState::queued || state == LegState::claimed ? 1U : 0U;
  }
  return count;
}
Timestamp BaseEvent::event_created_at() const noexcept {
  return to_timestamp(as_record(record_.get())->created_at);
}
EventStatus BaseEvent::event_status() const noexcept {
  const Record* const record = as_record(record_.get());
  if (record->completed()) return EventStatus::completed;
  return record->started_at.load(std::memory_order_acquire) != 0 ? EventStatus::started : EventStatus::pending;
}
std::optional<Timestamp> BaseEvent::event_started_at() const noexcept {
  const std::int64_t at = as_record(record_.get())->started_at.load(std::memory_order_acquire);
  if (at == 0) return std::nullopt;
  return to_timestamp(at);
}
std::optional<Timestamp> BaseEvent::event_completed_at() const noexcept {
  const Record* const record = as_record(record_.get());
  if (!record->completed()) return std::nullopt;
  return to_timestamp(record->completed_at.load(std::memory_order_relaxed));
}

void BaseEvent::set_event_timeout(std::optional<Seconds> value) const {
  check_duration(value, "event_timeout");
  change_options(as_record(record_.get()), [&](OptionBlock& block) { block.fields.event_timeout = value; });
}
void BaseEvent::set_event_slow_timeout(std::optional<Seconds> value) const {
  check_duration(value, "event_slow_timeout");
  change_options(as_record(record_.get()), [&](OptionBlock& block) { block.fields.event_slow_timeout = value; });
}
void BaseEvent::set_event_concurrency(std::optional<EventConcurrency> value) const {
  change_options(as_record(record_.get()), [&](OptionBlock& block) { block.fields.event_concurrency = value; });
}
void BaseEvent::set_event_handler_timeout(std::optional<Seconds> value) const {
  check_duration(value, "event_handler_timeout");
  change_options(as_record(record_.get()), [&](OptionBlock& block) { block.fields.event_handler_timeout = value; });
}
void BaseEvent::set_event_handler_slow_timeout(std::optional<Seconds> value) const {
  check_duration(value, "event_handler_slow_timeout");
  change_options(as_record(record_.get()),
                 [&](OptionBlock& block) { block.fields.event_handler_slow_timeout = value; });
}
void BaseEvent::set_event_handler_concurrency(std::optional<EventHandlerConcurrency> value) const {
  change_options(as_record(record_.get()), [&](OptionBlock& block) { block.fields.event_handler_concurrency = value; });
}
void BaseEvent::set_event_handler_completion(std::optional<EventHandlerCompletion> value) const {
  change_options(as_record(record_.get()), [&](OptionBlock& block) { block.fields.event_handler_completion = value; });
}

BaseEvent BaseEvent::emit(BaseEvent child) const {
  return BaseEvent(emit_child(record_.get(), std::move(child.record_)));
}

EventBusRef BaseEvent::event_bus() const {
  Record* const record = as_record(record_.get());
  BusCore* bus = nullptr;
  if (current_frame != nullptr && current_frame->record == record) {
    bus = current_frame->bus;
  } else if (record->accepted()) {
    bus = record->first_leg.bus;
  }
  if (bus == nullptr) throw ValidationError("event has no bus attached", "event");
  retain_core(bus);
  return EventBusRef(bus);
}

std::vector<BaseEvent> BaseEvent::event_children() const {
  std::vector<BaseEvent> children;
  for (const EventResult& result : event_results())
    for (BaseEvent& child : result.event_children()) children.push_back(std::move(child));
  return children;
}

}  // namespace abxbus

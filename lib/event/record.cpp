#include "event/record.hpp"

#include "event/clock.hpp"
#include "event/id_source.hpp"
#include "event/names.hpp"

#include <abxbus/error.hpp>

#include <new>
#include <string>
#include <unordered_map>
#include <utility>

namespace abxbus::detail {

namespace {

/// Interned event type names; they live as long as the process.
struct KeyTable {
  std::mutex mutex;
  std::unordered_map<std::string_view, TypeKey*> keys;
};

KeyTable& key_table() {
  static auto* table = new KeyTable;
  return *table;
}

void destroy_untyped(void* payload) noexcept {
  static_cast<UntypedPayload*>(payload)->~UntypedPayload();
}
void encode_untyped(const void* payload, codec::Writer& out) {
  const json::ref& value = static_cast<const UntypedPayload*>(payload)->value;
  if (value) {
    out.raw(value.get());
  } else {
    out.begin_object(0);
    out.end_object();
  }
}

constexpr TypeDefaults no_defaults{};

constinit EventTypeInfo untyped_info{
    "BaseEvent",     &no_defaults, sizeof(UntypedPayload), &typeid(UntypedPayload), &destroy_untyped,
    &encode_untyped, nullptr};

/// Records of a chain are released one after another, not inside each other's destruction, so that a chain of any
/// length is freed with constant stack.
struct ReleaseQueue {
  bool active = false;
  std::vector<Record*> waiting;
};
thread_local ReleaseQueue release_queue;

void free_rare(RareData* rare) noexcept {
  for (const RareData::View& view : rare->views) {
    if (view.type->destroy != nullptr) view.type->destroy(view.object);
    deallocate(view.object);
  }
  if (rare->parent != nullptr) release_record(rare->parent);
  if (rare->emitter != nullptr) release_entry(rare->emitter);
  delete rare;
}

void free_results(HandlerRun* results, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (results[i].entry != nullptr) release_entry_later(results[i].entry);
    results[i].value.reset();
  }
}

void free_record(Record* record) noexcept {
  if (record->type->destroy != nullptr) record->type->destroy(payload_of(record));
  BusCore* const payer = record->account_bus;
  std::int64_t charged = record->charged;
  Leg* leg = &record->first_leg;
  while (leg != nullptr) {
    Leg* const next = leg->next.load(std::memory_order_acquire);
    HandlerRun* const results = leg->results.load(std::memory_order_acquire);
    if (results != nullptr) {
      free_results(results, leg->result_count);
      if (results != &record->first_run) {
        charged += static_cast<std::int64_t>(usable_bytes(results));
        deallocate(results);
      }
    }
    if (leg != &record->first_leg) {
      BusCore* const bus = leg->bus;
      const auto bytes = static_cast<std::int64_t>(usable_bytes(leg));
      leg->~Leg();
      deallocate(leg);
      charge_bus(bus, -bytes, -1);  // last touch of that bus
    }
    leg = next;
  }
  OptionBlock* block = record->options.load(std::memory_order_acquire);
  while (block != nullptr) delete std::exchange(block, block->previous);
  if (RareData* rare = record->rare.load(std::memory_order_acquire)) free_rare(rare);
  record->~Record();
  deallocate(record);
  charge_bus(payer, -charged, -1);  // last touch of the bus: it may go now
}

}  // namespace

const TypeKey* intern_type(std::string_view event_type) {
  KeyTable& table = key_table();
  const std::lock_guard lock(table.mutex);
  if (const auto found = table.keys.find(event_type); found != table.keys.end()) return found->second;
  auto* key = new TypeKey{std::string(event_type)};
  table.keys.emplace(key->name, key);
  return key;
}

RecordHead* new_record(const EventTypeInfo& type) {
  const TypeKey* key = type.key.load(std::memory_order_acquire);
  if (key == nullptr) [[unlikely]] {
    check_event_type(type.event_type);
    key = intern_type(type.event_type);
    type.key.store(key, std::memory_order_release);
  }
  void* const memory = allocate(record_bytes + type.size);
  auto* const record = ::new (memory) Record;
  record->refs.store(1, std::memory_order_relaxed);
  record->flags.store(type.defaults->event_blocks_parent_completion ? flag_blocking : 0U, std::memory_order_relaxed);
  record->type = &type;
  record->holds.store(0, std::memory_order_relaxed);
  record->charged = static_cast<std::uint32_t>(usable_bytes(memory));
  record->created_at = now_ns();
  record->salt = next_salt();
  record->key = key;
  record->rare.store(nullptr, std::memory_order_relaxed);
  record->account_bus = nullptr;
  record->first_leg.record = record;
  record->started_at.store(0, std::memory_order_relaxed);
  record->completed_at.store(0, std::memory_order_relaxed);
  record->options.store(nullptr, std::memory_order_relaxed);
  record->waiters = nullptr;
  record->last_leg = nullptr;
  record->leg_count.store(0, std::memory_order_relaxed);
  return record;
}

void discard_record(RecordHead* head) noexcept {
  Record* const record = as_record(head);
  record->~Record();
  deallocate(record);
}

void destroy_record(RecordHead* head) noexcept {
  Record* record = as_record(head);
  ReleaseQueue& queue = release_queue;
  if (queue.active) {
    queue.waiting.push_back(record);
    return;
  }
  queue.active = true;
  free_record(record);
  while (!queue.waiting.empty()) {
    record = queue.waiting.back();
    queue.waiting.pop_back();
    free_record(record);
  }
  queue.active = false;
}

bool try_retain(Record* record) noexcept {
  std::uint32_t count = record->refs.load(std::memory_order_relaxed);
  while (count != 0) {
    // Acquire pairs with the release of whoever published the record.
    if (record->refs.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void dispose_leg(Leg* leg, LegDisposal condition) noexcept {
  Record* const record = leg->record;
  if (leg->disposal.fetch_or(condition, std::memory_order_acq_rel) == 0) return;
  if (!leg->remembered) {
    release_record(record);
    return;
  }
  BusCore* const bus = leg->bus;
  const auto bytes = static_cast<std::int64_t>(usable_bytes(leg));
  leg->~Leg();
  deallocate(leg);
  release_record(record);
  charge_bus(bus, -bytes, -1);  // last touch of that bus
}

RareData& rare_of(Record* record) {
  RareData* rare = record->rare.load(std::memory_order_acquire);
  if (rare != nullptr) return *rare;
  auto fresh = std::make_unique<RareData>();
  if (record->rare.compare_exchange_strong(rare, fresh.get(), std::memory_order_acq_rel, std::memory_order_acquire))
    return *fresh.release();
  return *rare;
}

const TypeDefaults& option_fields(const Record* record) noexcept {
  if (const OptionBlock* block = record->options.load(std::memory_order_acquire)) return block->fields;
  return *record->type->defaults;
}

Uuid event_id_of(const Record* record) noexcept {
  if (const RareData* rare = record->rare.load(std::memory_order_acquire); rare != nullptr && rare->event_id)
    return *rare->event_id;
  return make_v7(record->created_at, record->salt);
}

Uuid result_id_of(const Record* record, const HandlerRun* run) noexcept {
  // Position among all results the event can have: 2^32 handlers a leg.
  std::uint64_t position = 0;
  for (const Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    const HandlerRun* results = leg->results.load(std::memory_order_acquire);
    if (results != nullptr && run >= results && run < results + leg->result_count)
      return make_v7(record->created_at, part_salt(record->salt, position + static_cast<std::uint64_t>(run - results)));
    position += std::uint64_t{1} << 32;
  }
  return make_v7(record->created_at, part_salt(record->salt, position));
}

const EventTypeInfo& untyped_type() noexcept {
  return untyped_info;
}
bool is_untyped(const Record* record) noexcept {
  return record->type == &untyped_info;
}

std::string_view type_name_of(const Record* record) noexcept {
  return record->key->name;
}

std::string event_label_of(const Record* record) {
  return event_label(type_name_of(record), event_id_of(record));
}

}  // namespace abxbus::detail

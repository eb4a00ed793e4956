#include "bus/registry.hpp"

#include "bus/core.hpp"
#include "event/clock.hpp"
#include "event/log.hpp"
#include "event/names.hpp"
#include "event/text_forms.hpp"

#include <abxbus/error.hpp>
#include <abxbus/handler_id.hpp>

#include <algorithm>
#include <cmath>
#include <new>

namespace abxbus::detail {

// -- entries ------------------------------------------------------------------------------------------------------------

namespace {
std::optional<Seconds> seconds_of(const std::atomic<double>& value) noexcept {
  const double seconds = value.load(std::memory_order_relaxed);
  if (std::isnan(seconds)) return std::nullopt;
  return Seconds(seconds);
}
}  // namespace

std::string entry_file_path(const Entry& entry) {
  if (!entry.file_path.empty() || !entry.detect_path) return entry.file_path;
  return std::string(entry.where.file_name()) + ":" + std::to_string(entry.where.line());
}

std::string_view entry_name(const Entry& entry) noexcept {
  if (!entry.name.empty()) return entry.name;
  return entry.forwarder ? "emit" : "anonymous";
}

const std::string& entry_id(const Entry& entry) {
  if (!entry.explicit_id.empty()) return entry.explicit_id;
  std::call_once(entry.id_once, [&] {
    const std::string path = entry_file_path(entry);
    entry.computed_id = compute_handler_id(entry.bus_id, entry_name(entry),
                                           path.empty() ? std::nullopt : std::optional<std::string_view>(path),
                                           to_timestamp(entry.registered_at).str(), entry.key->name);
  });
  return entry.computed_id;
}

std::string entry_label(const Entry& entry) { return handler_label(entry_name(entry), entry_id(entry)); }
std::string entry_display(const Entry& entry) {
  return handler_display(entry_name(entry), entry_id(entry), entry_file_path(entry));
}
std::optional<Seconds> entry_timeout(const Entry& entry) noexcept { return seconds_of(entry.timeout); }
std::optional<Seconds> entry_slow_timeout(const Entry& entry) noexcept { return seconds_of(entry.slow_timeout); }

void release_entry(Entry* entry) noexcept {
  if (entry->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete entry;
}

namespace {

void drop_callable(void* object) noexcept {
  auto* const entry = static_cast<Entry*>(object);
  entry->callable.reset();
  release_entry(entry);
}
void drop_array(void* object) noexcept { delete[] static_cast<Entry**>(object); }
void drop_bytes(void* object) noexcept { ::operator delete(object); }

}  // namespace

// -- lists --------------------------------------------------------------------------------------------------------------

Registry::~Registry() {
  KeyList* list = first_;
  while (list != nullptr) {
    Entry** const entries = list->entries.load(std::memory_order_relaxed);
    const std::uint32_t length = list->length.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < length; ++i)
      if (entries[i]->del_version.load(std::memory_order_relaxed) == UINT64_MAX) drop_callable(entries[i]);
    delete[] entries;
    delete std::exchange(list, list->next);
  }
  ::operator delete(table_.load(std::memory_order_relaxed));
}

KeyList* Registry::find(const TypeKey* key) const noexcept {
  const Table* const table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  for (std::size_t i = hash(key) & table->mask;; i = (i + 1) & table->mask) {
    KeyList* const list = table->slots[i].load(std::memory_order_acquire);
    if (list == nullptr || list->key == key) return list;
  }
}

void Registry::insert_into_table(KeyList* list) {
  Table* table = table_.load(std::memory_order_relaxed);
  const auto put = [](Table* into, KeyList* item) {
    std::size_t i = hash(item->key) & into->mask;
    while (into->slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & into->mask;
    into->slots[i].store(item, std::memory_order_release);
  };
  if (table == nullptr || lists_ * 2 > table->mask) {
    const std::size_t size = table == nullptr ? 8 : (table->mask + 1) * 2;
    void* const memory = ::operator new(sizeof(Table) + sizeof(std::atomic<KeyList*>) * size);
    auto* const bigger = ::new (memory) Table{size - 1, {}};
    for (std::size_t i = 0; i < size; ++i) ::new (&bigger->slots[i]) std::atomic<KeyList*>(nullptr);
    for (KeyList* each = first_; each != nullptr; each = each->next)
      if (each != list && each->key->name != "*") put(bigger, each);
    if (table != nullptr) bus_.reclaimer.retire({&drop_bytes, table});
    put(bigger, list);
    table_.store(bigger, std::memory_order_release);
    return;
  }
  put(table, list);
}

KeyList* Registry::list_for(const TypeKey* key) {
  const bool all = key->name == "*";
  if (KeyList* const found = all ? wildcard() : find(key)) return found;
  auto* const list = new KeyList;
  list->key = key;
  if (last_ == nullptr) {
    first_ = last_ = list;
  } else {
    last_ = last_->next = list;
  }
  ++lists_;
  if (all) {
    wildcard_.store(list, std::memory_order_release);
  } else {
    insert_into_table(list);
  }
  return list;
}

void Registry::grow(KeyList* list) {
  const std::uint32_t length = list->length.load(std::memory_order_relaxed);
  if (length < list->capacity) return;
  const std::uint32_t capacity = list->capacity == 0 ? 4 : list->capacity * 2;
  auto** const bigger = new Entry*[capacity];
  Entry** const before = list->entries.load(std::memory_order_relaxed);
  std::copy_n(before, length, bigger);
  list->entries.store(bigger, std::memory_order_release);
  list->capacity = capacity;
  if (before != nullptr) bus_.reclaimer.retire({&drop_array, before});
}

/// Copies the live entries into a new array when more than half (and more than 16) are dead. Nothing visible at the
/// current version changes, so readers of that version may see either array.
void Registry::compact(KeyList* list) {
  const std::uint32_t live = list->live.load(std::memory_order_relaxed);
  if (list->dead <= live + 16) return;
  const std::uint32_t length = list->length.load(std::memory_order_relaxed);
  Entry** const before = list->entries.load(std::memory_order_relaxed);
  const std::uint32_t capacity = std::max<std::uint32_t>(4, live * 2);
  auto** const smaller = new Entry*[capacity];
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < length; ++i)
    if (before[i]->del_version.load(std::memory_order_relaxed) == UINT64_MAX) smaller[kept++] = before[i];
  // Length and array are two words: a version change between them makes every reader that straddled it look again.
  bump();
  list->length.store(0, std::memory_order_release);
  list->entries.store(smaller, std::memory_order_release);
  list->length.store(kept, std::memory_order_release);
  list->capacity = capacity;
  list->dead = 0;
  bus_.reclaimer.retire({&drop_array, before});
  bump();
}

Entry* Registry::add(const TypeKey* key, std::unique_ptr<Entry> owned, bool warn_on_duplicate) {
  bool duplicate = false;
  Entry* entry = owned.get();
  Callable replaced;  // destroyed outside the mutex
  {
    const std::lock_guard lock(mutex_);
    KeyList* const list = list_for(key);
    const std::uint32_t live = list->live.load(std::memory_order_relaxed);
    Entry** const entries = list->entries.load(std::memory_order_relaxed);
    const std::uint32_t length = list->length.load(std::memory_order_relaxed);
    if (warn_on_duplicate && !entry->name.empty() && live >= 1 && live <= 256) {
      for (std::uint32_t i = 0; i < length && !duplicate; ++i)
        duplicate = entries[i]->del_version.load(std::memory_order_relaxed) == UINT64_MAX && entries[i]->name == entry->name;
    }
    Entry* same = nullptr;
    if (!entry->explicit_id.empty()) {
      same = lookup_id(entry->explicit_id);
      if (same != nullptr && same->list != list)
        throw ValidationError("handler id is already registered for another event pattern: " + entry->explicit_id, "id");
    }
    entry->number = next_number_++;
    if (entry->registered_at <= last_registered_at_ && !entry->time_given) entry->registered_at = last_registered_at_ + 1;
    if (!entry->time_given) last_registered_at_ = entry->registered_at;
    entry->list = list;
    entry->add_version = version_.load(std::memory_order_relaxed) + 1;
    retain_entry(entry);  // the caller's
    owned.release();
    if (same != nullptr) {
      // In place: same position, a new entry object; the old one keeps serving runs that have it.
      for (std::uint32_t i = 0; i < length; ++i) {
        if (entries[i] != same) continue;
        entry->number = same->number;
        auto** const copy = new Entry*[list->capacity];
        std::copy_n(entries, length, copy);
        copy[i] = entry;
        bump();
        same->del_version.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        entry->add_version = version_.load(std::memory_order_relaxed) + 1;
        list->entries.store(copy, std::memory_order_release);
        bus_.reclaimer.retire({&drop_array, entries});
        break;
      }
      ids_.erase(entry->explicit_id);
      same->list = nullptr;
      bus_.reclaimer.retire({&drop_callable, same});
    } else {
      grow(list);
      store_entry(list->entries.load(std::memory_order_relaxed), length, entry);
      list->length.store(length + 1, std::memory_order_release);
      list->live.store(live + 1, std::memory_order_relaxed);
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    if (!entry->explicit_id.empty()) ids_.emplace(entry->explicit_id, entry);
    bump();
  }
  if (bus_.reclaimer.has_retired()) bus_.reclaimer.collect();
  if (duplicate)
    log(LogLevel::warning, "Handler " + entry->name + " already registered for event '" + key->name + "' on " +
                               bus_.label + "; results of both will be recorded under different ids");
  return entry;
}

/// Registry mutex held.
void Registry::delete_entry(Entry* entry) {
  KeyList* const list = std::exchange(entry->list, nullptr);
  entry->del_version.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  list->live.fetch_sub(1, std::memory_order_relaxed);
  ++list->dead;
  count_.fetch_sub(1, std::memory_order_relaxed);
  if (!entry->explicit_id.empty()) {
    ids_.erase(entry->explicit_id);
  } else if (!entry->indexed_id.empty()) {
    ids_.erase(entry->indexed_id);
  }
  bump();
  // Dead entries at the end are popped: a reader of the current version does not see them anyway.
  std::uint32_t length = list->length.load(std::memory_order_relaxed);
  Entry** const entries = list->entries.load(std::memory_order_relaxed);
  while (length != 0 && entries[length - 1]->del_version.load(std::memory_order_relaxed) != UINT64_MAX) {
    --length;
    --list->dead;
  }
  list->length.store(length, std::memory_order_release);
  compact(list);
  bus_.reclaimer.retire({&drop_callable, entry});
}

void Registry::finish_removal(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  bus_.reclaimer.collect();
}

void Registry::remove(const TypeKey* key, Entry* entry) {
  std::unique_lock lock(mutex_);
  if (entry->list == nullptr || (key != nullptr && entry->list->key != key)) return;
  if (entry->owner != &bus_) return;
  delete_entry(entry);
  finish_removal(lock);
}

/// Registry mutex held. Generated ids are computed when the first id is looked up that could be one.
Entry* Registry::lookup_id(std::string_view id) {
  if (const auto found = ids_.find(id); found != ids_.end()) return found->second;
  if (id.size() != 36 || id[14] != '5') return nullptr;  // not of the form of a generated one
  for (KeyList* list = first_; list != nullptr; list = list->next) {
    Entry** const entries = list->entries.load(std::memory_order_relaxed);
    const std::uint32_t length = list->length.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < length; ++i) {
      Entry* const entry = entries[i];
      if (entry->list == nullptr || !entry->explicit_id.empty() || !entry->indexed_id.empty()) continue;
      entry->indexed_id = entry_id(*entry);
      ids_.emplace(entry->indexed_id, entry);
    }
  }
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : found->second;
}

void Registry::remove_id(const TypeKey* key, std::string_view id) {
  std::unique_lock lock(mutex_);
  Entry* const entry = lookup_id(id);
  if (entry == nullptr || (key != nullptr && entry->list->key != key)) return;
  delete_entry(entry);
  finish_removal(lock);
}

void Registry::remove_identity(const TypeKey* key, const void* identity) {
  if (identity == nullptr) return;
  std::unique_lock lock(mutex_);
  KeyList* const list = key->name == "*" ? wildcard() : find(key);
  if (list == nullptr) return;
  std::vector<Entry*> matching;
  Entry** const entries = list->entries.load(std::memory_order_relaxed);
  const std::uint32_t length = list->length.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < length; ++i)
    if (entries[i]->list != nullptr && entries[i]->callable.identity() == identity) matching.push_back(entries[i]);
  for (Entry* each : matching) delete_entry(each);
  finish_removal(lock);
}

void Registry::remove_key(const TypeKey* key) {
  std::unique_lock lock(mutex_);
  KeyList* const list = key->name == "*" ? wildcard() : find(key);
  if (list == nullptr) return;
  std::vector<Entry*> all_of_key;
  Entry** const entries = list->entries.load(std::memory_order_relaxed);
  const std::uint32_t length = list->length.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < length; ++i)
    if (entries[i]->list != nullptr) all_of_key.push_back(entries[i]);
  for (auto each = all_of_key.rbegin(); each != all_of_key.rend(); ++each) delete_entry(*each);
  finish_removal(lock);
}

void Registry::clear() {
  std::unique_lock lock(mutex_);
  for (KeyList* list = first_; list != nullptr; list = list->next) {
    std::vector<Entry*> entries_of_list;
    Entry** const entries = list->entries.load(std::memory_order_relaxed);
    const std::uint32_t length = list->length.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < length; ++i)
      if (entries[i]->list != nullptr) entries_of_list.push_back(entries[i]);
    for (auto each = entries_of_list.rbegin(); each != entries_of_list.rend(); ++each) delete_entry(*each);
  }
  finish_removal(lock);
}

// -- inspection -----------------------------------------------------------------------------------------------------------

std::vector<Entry*> Registry::all() {
  std::vector<Entry*> result;
  const std::lock_guard lock(mutex_);
  for (KeyList* list = first_; list != nullptr; list = list->next) {
    Entry** const entries = list->entries.load(std::memory_order_relaxed);
    const std::uint32_t length = list->length.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < length; ++i) {
      if (entries[i]->list == nullptr) continue;
      retain_entry(entries[i]);
      result.push_back(entries[i]);
    }
  }
  std::sort(result.begin(), result.end(), [](const Entry* a, const Entry* b) { return a->number < b->number; });
  return result;
}

Entry* Registry::by_id(std::string_view id) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = lookup_id(id);
  if (entry != nullptr) retain_entry(entry);
  return entry;
}

std::vector<std::pair<std::string, std::vector<Entry*>>> Registry::by_key() {
  std::vector<std::pair<std::uint64_t, std::pair<std::string, std::vector<Entry*>>>> keyed;
  {
    const std::lock_guard lock(mutex_);
    for (KeyList* list = first_; list != nullptr; list = list->next) {
      std::vector<Entry*> of_key;
      Entry** const entries = list->entries.load(std::memory_order_relaxed);
      const std::uint32_t length = list->length.load(std::memory_order_relaxed);
      for (std::uint32_t i = 0; i < length; ++i) {
        if (entries[i]->list == nullptr) continue;
        retain_entry(entries[i]);
        of_key.push_back(entries[i]);
      }
      if (of_key.empty()) continue;
      const std::uint64_t first = of_key.front()->number;
      keyed.push_back({first, {list->key->name, std::move(of_key)}});
    }
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::pair<std::string, std::vector<Entry*>>> result;
  for (auto& each : keyed) result.push_back(std::move(each.second));
  return result;
}

}  // namespace abxbus::detail

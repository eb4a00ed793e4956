#include "bus/registry.hpp"

#include "bus/core.hpp"
#include "event/clock.hpp"
#include "event/log.hpp"
#include "event/names.hpp"
#include "event/text_forms.hpp"
#include "event/thread_state.hpp"

#include <abxbus/error.hpp>
#include <abxbus/handler_id.hpp>

#include <algorithm>
#include <cmath>
#include <new>

namespace abxbus::detail {

// -- entries
// ------------------------------------------------------------------------------------------------------------

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

std::string entry_label(const Entry& entry) {
  return handler_label(entry_name(entry), entry_id(entry));
}
std::string entry_display(const Entry& entry) {
  return handler_display(entry_name(entry), entry_id(entry), entry_file_path(entry));
}
std::optional<Seconds> entry_timeout(const Entry& entry) noexcept {
  return seconds_of(entry.timeout);
}
std::optional<Seconds> entry_slow_timeout(const Entry& entry) noexcept {
  return seconds_of(entry.slow_timeout);
}

void release_entry(Entry* entry) noexcept {
  if (entry->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete entry;
}

namespace {

/// References of one entry that this thread owes. Flushed when another entry comes, at 256, and when the thread ends.
struct OwedReleases {
  Entry* entry;
  std::uint32_t count;
};
ABXBUS_TLS OwedReleases owed{nullptr, 0};

void pay_owed() noexcept {
  Entry* const entry = std::exchange(owed.entry, nullptr);
  const std::uint32_t count = std::exchange(owed.count, 0);
  if (entry != nullptr && entry->refs.fetch_sub(count, std::memory_order_acq_rel) == count) delete entry;
}

/// Pays when the thread ends.
struct PayAtExit {
  ~PayAtExit() { pay_owed(); }
};

}  // namespace

void release_entry_later(Entry* entry) noexcept {
  if (owed.entry == entry && owed.count < 256) [[likely]] {
    ++owed.count;
    return;
  }
  pay_owed();
  thread_local PayAtExit at_exit;
  static_cast<void>(at_exit);
  owed = {entry, 1};
}

namespace {

/// The registry's reference, once no array that a reader could walk names the entry.
void drop_entry(void* object) noexcept {
  release_entry(static_cast<Entry*>(object));
}
/// The callable, and the reference that this comes with.
void drop_callable(void* object) noexcept {
  static_cast<Entry*>(object)->callable.reset();
  drop_entry(object);
}
void drop_bytes(void* object) noexcept {
  ::operator delete(object);
}

EntryArray* make_array(std::uint32_t capacity) {
  return ::new (::operator new(sizeof(EntryArray) + capacity * sizeof(Entry*))) EntryArray{capacity, 0};
}

struct Entries {
  Entry** entries = nullptr;
  std::uint32_t length = 0;
};
/// Registry mutex held.
Entries entries_of(const KeyList* list) noexcept {
  EntryArray* const array = list->array.load(std::memory_order_relaxed);
  if (array == nullptr) return {};
  return {array->places(), array->length.load(std::memory_order_relaxed)};
}

}  // namespace

// -- lists
// --------------------------------------------------------------------------------------------------------------

Registry::~Registry() {
  KeyList* list = first_;
  while (list != nullptr) {
    const auto [entries, length] = entries_of(list);
    for (std::uint32_t i = 0; i < length; ++i) drop_callable(entries[i]);
    drop_bytes(list->array.load(std::memory_order_relaxed));
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
    put(bigger, list);
    table_.store(bigger, std::memory_order_release);
    if (table != nullptr) bus_.reclaimer.retire({&drop_bytes, table});
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

void Registry::append(KeyList* list, Entry* entry) {
  EntryArray* array = list->array.load(std::memory_order_relaxed);
  const std::uint32_t length = array == nullptr ? 0 : array->length.load(std::memory_order_relaxed);
  if (array == nullptr || length == array->capacity) {
    EntryArray* const bigger = make_array(array == nullptr ? 4 : array->capacity * 2);
    if (array != nullptr) std::copy_n(array->places(), length, bigger->places());
    bigger->length.store(length, std::memory_order_relaxed);
    list->array.store(bigger, std::memory_order_release);
    if (array != nullptr) bus_.reclaimer.retire({&drop_bytes, array});
    array = bigger;
  }
  store_entry(array->places(), length, entry);
  array->length.store(length + 1, std::memory_order_release);
}

/// Copies the live entries into a new array when more than half (and more than 16) are dead. Nothing visible at the
/// current version changes, so readers of that version may see either array.
void Registry::compact(KeyList* list) {
  const std::uint32_t live = list->live.load(std::memory_order_relaxed);
  if (list->dead <= live + 16) return;
  const auto [entries, length] = entries_of(list);
  const std::uint32_t capacity = std::max<std::uint32_t>(4, live * 2);
  EntryArray* const smaller = make_array(capacity);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < length; ++i) {
    if (entries[i]->del_version.load(std::memory_order_relaxed) == UINT64_MAX) smaller->places()[kept++] = entries[i];
  }
  smaller->length.store(kept, std::memory_order_relaxed);
  list->dead = 0;
  EntryArray* const before = list->array.exchange(smaller, std::memory_order_acq_rel);
  // Only now that nobody can come to them any more.
  for (std::uint32_t i = 0; i < length; ++i)
    if (entries[i]->del_version.load(std::memory_order_relaxed) != UINT64_MAX)
      bus_.reclaimer.retire({&drop_entry, entries[i]});
  bus_.reclaimer.retire({&drop_bytes, before});
}

/// `after` takes the place of `before` in the order: behind it, and visible from the version on at which the other is
/// dead.
void Registry::replace(KeyList* list, Entry* before, Entry* after) {
  const auto [entries, length] = entries_of(list);
  EntryArray* const copy = make_array(std::max(list->array.load(std::memory_order_relaxed)->capacity, length + 1));
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < length; ++i) {
    copy->places()[kept++] = entries[i];
    if (entries[i] == before) copy->places()[kept++] = after;
  }
  copy->length.store(kept, std::memory_order_relaxed);
  before->del_version.store(after->add_version, std::memory_order_release);
  before->list = nullptr;
  ++list->dead;
  bus_.reclaimer.retire({&drop_bytes, list->array.exchange(copy, std::memory_order_acq_rel)});
  bump();  // before the callable is given up: nobody who begins later may find it visible
  retain_entry(before);
  bus_.reclaimer.retire({&drop_callable, before});
}

Entry* Registry::add(const TypeKey* key, std::unique_ptr<Entry> owned, bool warn_on_duplicate) {
  bool duplicate = false;
  Entry* entry = owned.get();
  {
    const std::lock_guard lock(mutex_);
    // A destroy marks the bus before it clears under this mutex: no registration slips in behind it.
    require_live(&bus_, "on");
    KeyList* const list = list_for(key);
    const std::uint32_t live = list->live.load(std::memory_order_relaxed);
    const auto [entries, length] = entries_of(list);
    if (warn_on_duplicate && !entry->name.empty() && live >= 1 && live <= 256) {
      for (std::uint32_t i = 0; i < length && !duplicate; ++i)
        duplicate =
            entries[i]->del_version.load(std::memory_order_relaxed) == UINT64_MAX && entries[i]->name == entry->name;
    }
    Entry* same = nullptr;
    if (!entry->explicit_id.empty()) {
      same = lookup_id(entry->explicit_id);
      if (same != nullptr && same->list != list)
        throw ValidationError("handler id is already registered for another event pattern: " + entry->explicit_id,
                              "id");
    }
    entry->number = next_number_++;
    if (entry->registered_at <= last_registered_at_ && !entry->time_given)
      entry->registered_at = last_registered_at_ + 1;
    if (!entry->time_given) last_registered_at_ = entry->registered_at;
    entry->list = list;
    entry->add_version = version_.load(std::memory_order_relaxed) + 1;
    retain_entry(entry);  // the caller's
    owned.release();
    if (same != nullptr) {
      // In place: same position, a new entry object; the old one keeps serving runs that have it.
      entry->number = same->number;
      ids_.erase(same->explicit_id.empty() ? std::string_view(same->indexed_id) : std::string_view(same->explicit_id));
      replace(list, same, entry);
    } else {
      append(list, entry);
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    if (!entry->explicit_id.empty()) ids_.emplace(entry->explicit_id, entry);
    if (same == nullptr) {
      bump();
      // Behind the version: a reader that met the former length may not find it equal to this count.
      list->live.store(live + 1, std::memory_order_release);
    }
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
  list->live.fetch_sub(1, std::memory_order_release);
  ++list->dead;
  count_.fetch_sub(1, std::memory_order_relaxed);
  if (!entry->explicit_id.empty()) {
    ids_.erase(entry->explicit_id);
  } else if (!entry->indexed_id.empty()) {
    ids_.erase(entry->indexed_id);
  }
  bump();
  // Dead entries at the end are popped while nobody reads: who begins now does not see them anyway. Others keep their
  // place, and the registry's reference with it, since every reader looks at their versions.
  EntryArray* const array = list->array.load(std::memory_order_relaxed);
  std::uint32_t length = array->length.load(std::memory_order_relaxed);
  if (array->places()[length - 1] != entry || !bus_.reclaimer.quiet()) {
    retain_entry(entry);
    bus_.reclaimer.retire({&drop_callable, entry});
    compact(list);
    return;
  }
  const std::uint32_t before = length;
  while (length != 0 && array->places()[length - 1]->del_version.load(std::memory_order_relaxed) != UINT64_MAX)
    --length;
  array->length.store(length, std::memory_order_release);
  // Only now that nobody can come to them any more.
  bus_.reclaimer.retire({&drop_callable, entry});
  for (std::uint32_t i = length; i + 1 < before; ++i) bus_.reclaimer.retire({&drop_entry, array->places()[i]});
  list->dead -= before - length;
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
    const auto [entries, length] = entries_of(list);
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
  const auto [entries, length] = entries_of(list);
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
  const auto [entries, length] = entries_of(list);
  for (std::uint32_t i = 0; i < length; ++i)
    if (entries[i]->list != nullptr) all_of_key.push_back(entries[i]);
  for (auto each = all_of_key.rbegin(); each != all_of_key.rend(); ++each) delete_entry(*each);
  finish_removal(lock);
}

void Registry::clear() {
  std::unique_lock lock(mutex_);
  for (KeyList* list = first_; list != nullptr; list = list->next) {
    std::vector<Entry*> entries_of_list;
    const auto [entries, length] = entries_of(list);
    for (std::uint32_t i = 0; i < length; ++i)
      if (entries[i]->list != nullptr) entries_of_list.push_back(entries[i]);
    for (auto each = entries_of_list.rbegin(); each != entries_of_list.rend(); ++each) delete_entry(*each);
  }
  finish_removal(lock);
}

// -- inspection
// -----------------------------------------------------------------------------------------------------------

std::vector<Entry*> Registry::all() {
  std::vector<Entry*> result;
  const std::lock_guard lock(mutex_);
  for (KeyList* list = first_; list != nullptr; list = list->next) {
    const auto [entries, length] = entries_of(list);
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
      const auto [entries, length] = entries_of(list);
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

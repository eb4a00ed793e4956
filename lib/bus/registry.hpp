#pragma once

#include "bus/entry.hpp"
#include "bus/reclaimer.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// The handlers of a bus.
///
/// Purpose: O(1) amortised `on` and `off` at any number of handlers; dispatch takes no lock. Entries are appended to an
/// array a key and carry the versions between which they are visible, so a snapshot is one version: immutable without
/// a copy. Dead entries at the end are popped while nobody reads; an array of which more than half (and more than 16)
/// is dead is replaced by a smaller one.
///
/// Snapshot protocol: v = version; read the list's array and its length (acquire); read the version again; equal -> the
/// entries with add <= v < del are the snapshot. A writer changes arrays so that nothing visible at the current version
/// changes, and raises the version last (seq_cst). A reader may walk its array at leisure afterwards: a place below a
/// length that it can have read is written again only when no reader of an older version is about (Reclaimer::quiet).
/// An array drops only entries that are dead at the version at which it is published; a reader of an older version that
/// meets it sees the version moved.
/// Threads: `on`/`off` any, under the registry mutex (no user code inside: callables and strings of removed entries are
/// destroyed outside); snapshots by whoever is protected by the reclaimer (a pin, or the bus's turn).
namespace abxbus::detail {

/// Entries of one key in registration order, the places behind the header.
struct EntryArray {
  std::uint32_t capacity;
  /// Places in use. Release by the writer after the place was written, acquire by readers.
  std::atomic<std::uint32_t> length;
  Entry** places() noexcept { return reinterpret_cast<Entry**>(this + 1); }
};
static_assert(sizeof(EntryArray) % alignof(Entry*) == 0);

/// Handlers of one key.
struct KeyList {
  const TypeKey* key = nullptr;
  /// Null before the first entry; replaced by a bigger or smaller copy (release).
  std::atomic<EntryArray*> array{nullptr};
  /// Entries not deleted at the current version; registry mutex for writing (release), snapshots read it (acquire).
  std::atomic<std::uint32_t> live{0};
  std::uint32_t dead = 0;   ///< in the array; registry mutex
  KeyList* next = nullptr;  ///< registration order of keys, constant after publication
};

/// A place of an array. One that was freed by popping a dead entry is written again while a reader may look at it, to
/// whom neither entry is visible; so both sides are atomic, and the release makes the new entry's fields visible.
inline Entry* load_entry(Entry** entries, std::uint32_t index) noexcept {
  return std::atomic_ref<Entry*>(entries[index]).load(std::memory_order_acquire);
}
inline void store_entry(Entry** entries, std::uint32_t index, Entry* entry) noexcept {
  std::atomic_ref<Entry*>(entries[index]).store(entry, std::memory_order_release);
}

class Registry {
 public:
  explicit Registry(BusCore& bus) noexcept : bus_(bus) {}
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Appends; the caller has validated everything but the id. Throws ValidationError for an id of another key.
  /// Returns the entry with one more reference for the caller.
  Entry* add(const TypeKey* key, std::unique_ptr<Entry> entry, bool warn_on_duplicate);
  void remove(const TypeKey* key, Entry* entry);  ///< null key: any
  void remove_id(const TypeKey* key, std::string_view id);
  void remove_identity(const TypeKey* key, const void* identity);
  void remove_key(const TypeKey* key);
  void clear();

  std::uint64_t version() const noexcept { return version_.load(std::memory_order_seq_cst); }

  /// List of a key, null: none ever. Protected readers only.
  KeyList* find(const TypeKey* key) const noexcept;
  KeyList* wildcard() const noexcept { return wildcard_.load(std::memory_order_acquire); }

  /// Inspection; each takes references for the caller.
  std::vector<Entry*> all();
  Entry* by_id(std::string_view id);
  std::vector<std::pair<std::string, std::vector<Entry*>>> by_key();
  std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  struct Table {
    std::size_t mask;
    std::atomic<KeyList*> slots[1];
  };
  KeyList* list_for(const TypeKey* key);
  void insert_into_table(KeyList* list);
  void delete_entry(Entry* entry);
  void compact(KeyList* list);
  void append(KeyList* list, Entry* entry);
  void replace(KeyList* list, Entry* before, Entry* after);
  Entry* lookup_id(std::string_view id);
  void bump() noexcept { version_.fetch_add(1, std::memory_order_seq_cst); }
  void finish_removal(std::unique_lock<std::mutex>& lock);
  static std::size_t hash(const TypeKey* key) noexcept {
    return (reinterpret_cast<std::uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15ULL >> 20;
  }

  BusCore& bus_;
  std::mutex mutex_;
  /// Seq_cst: Dekker with the turn word in the reclaimer (a holder takes the turn, then reads the version; `off` raises
  /// the version, then looks whether somebody holds the turn).
  alignas(64) std::atomic<std::uint64_t> version_{1};
  std::atomic<Table*> table_{nullptr};
  std::atomic<KeyList*> wildcard_{nullptr};
  KeyList* first_ = nullptr;  ///< all lists in order of their first registration
  KeyList* last_ = nullptr;
  std::size_t lists_ = 0;
  std::uint64_t next_number_ = 0;
  std::int64_t last_registered_at_ = 0;
  std::atomic<std::size_t> count_{0};
  /// Explicit ids at once; generated ones (2 us each) when an id of their form is first looked up.
  std::unordered_map<std::string_view, Entry*> ids_;
};

}  // namespace abxbus::detail

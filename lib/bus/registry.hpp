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
/// a copy. Dead entries at the end are popped, the array is compacted when more than half of it (and more than 16) is
/// dead.
///
/// Snapshot protocol: v = version (acquire); read the list's array and length (acquire); read the version again; equal
/// -> the entries with add <= v < del are the snapshot. A writer changes arrays so that nothing visible at the current
/// version changes, and raises the version last (release). So a reader that sees one version twice saw one state.
/// Threads: `on`/`off` any, under the registry mutex (no user code inside: callables and strings of removed entries are
/// destroyed outside); snapshots by whoever is protected by the reclaimer (a pin, or the bus's turn).
namespace abxbus::detail {

/// Visible handlers of one key at one version.
struct KeyList {
  const TypeKey* key = nullptr;
  /// `capacity` pointers in registration order; replaced by a bigger or compacted copy (release).
  std::atomic<Entry**> entries{nullptr};
  std::atomic<std::uint32_t> length{0};
  /// Entries not deleted at the current version; registry mutex for writing, relaxed hint for readers.
  std::atomic<std::uint32_t> live{0};
  std::uint32_t capacity = 0;  ///< registry mutex
  std::uint32_t dead = 0;      ///< registry mutex
  KeyList* next = nullptr;     ///< registration order of keys, constant after publication
};

/// An element of a list's array. A place freed by popping a dead entry is written again while readers of older lengths
/// may read it, so both sides are atomic; the release makes the new entry's fields visible to who meets it.
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

  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

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
  void grow(KeyList* list);
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

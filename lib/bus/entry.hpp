#pragma once

#include <abxbus/detail/invoke.hpp>
#include <abxbus/options.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>

namespace abxbus::detail {

struct BusCore;
struct KeyList;

/// One registration: what results show of it for ever, and the callable, which goes when no run can reach it any more.
///
/// Lifetime: `refs` counts the registry, EventHandler handles and results. The callable is emptied by the reclaimer
/// (registry.hpp), never while a run may call it.
struct Entry {
  std::atomic<std::uint32_t> refs{1};
  /// Registry version from / until which the entry is visible (release; read with acquire through the version).
  std::uint64_t add_version = 0;
  std::atomic<std::uint64_t> del_version{UINT64_MAX};
  std::uint64_t number = 0;  ///< registration number in the bus: the order of the list
  KeyList* list = nullptr;   ///< registry mutex; null once removed
  Callable callable;
  std::int64_t registered_at = 0;
  /// NaN: unset. Relaxed: a change counts from the next run on, nothing else depends on it.
  std::atomic<double> timeout;
  std::atomic<double> slow_timeout;
  const TypeKey* key = nullptr;
  std::source_location where;
  bool detect_path = false;
  bool forwarder = false;
  bool time_given = false;         ///< handler_registered_at came from the options
  const BusCore* owner = nullptr;  ///< identity only
  /// The bus's "some handler has a timeout of its own"; shared, since a handle outlives the bus.
  std::shared_ptr<std::atomic<bool>> owner_flags;
  std::string explicit_id;
  std::string name;  ///< empty: anonymous
  std::string file_path;
  std::string indexed_id;  ///< registry mutex: the generated id as the map's key
  std::string bus_id;
  std::string bus_name;
  mutable std::once_flag id_once;
  mutable std::string computed_id;
};

inline void retain_entry(Entry* entry, std::uint32_t count = 1) noexcept {
  entry->refs.fetch_add(count, std::memory_order_relaxed);
}

const std::string& entry_id(const Entry& entry);
std::string entry_file_path(const Entry& entry);
std::string_view entry_name(const Entry& entry) noexcept;
std::string entry_label(const Entry& entry);
std::string entry_display(const Entry& entry);
std::optional<Seconds> entry_timeout(const Entry& entry) noexcept;
std::optional<Seconds> entry_slow_timeout(const Entry& entry) noexcept;

}  // namespace abxbus::detail

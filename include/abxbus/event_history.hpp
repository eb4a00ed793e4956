#pragma once

#include <abxbus/event.hpp>
#include <abxbus/options.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace abxbus {

namespace detail {
class HistoryStore;
std::optional<BaseEvent> history_find(HistoryStore& store, std::string_view event_type,
                                      const FindOptions<BaseEvent>& options);
}  // namespace detail

/// The events that a bus remembers, in the order in which it accepted them (H-HIST); also usable alone. A handle:
/// copies name the same history. Threads: any; iteration works on a snapshot, callbacks are called without any lock
/// (H-HIST-32).
class EventHistory {
 public:
  /// A history of its own. Unset size: unbounded; 0: keeps only events that are not completed.
  explicit EventHistory(std::optional<std::size_t> max_history_size = 100, bool max_history_drop = false);

  /// Adds without enforcing the limit; an id that is present is replaced in place (H-HIST-27). On a bus's history the
  /// event is remembered, not processed.
  void add_event(BaseEvent event);
  std::optional<BaseEvent> get_event(const Uuid& id) const;
  /// Forgets the entry; a queued event is still processed (H-HIST-19). False when absent.
  bool remove_event(const Uuid& id);
  bool has_event(const Uuid& id) const;
  std::size_t size() const noexcept;
  void clear();
  /// All entries, oldest first.
  std::vector<BaseEvent> events() const;

  /// Newest match of the past window, by type name or "*"; `future` is ignored here (H-HIST-29).
  std::optional<BaseEvent> find(std::string_view pattern, const FindOptions<BaseEvent>& options = {}) const {
    return detail::history_find(*store_, pattern, options);
  }

  std::optional<std::size_t> max_history_size() const noexcept;
  void set_max_history_size(std::optional<std::size_t> size) noexcept;
  bool max_history_drop() const noexcept;
  void set_max_history_drop(bool drop) noexcept;

  /// Removes what H-HIST-28 says and returns how many; `on_remove` runs after each removal.
  std::size_t trim_event_history(const std::function<void(const BaseEvent&)>& on_remove = {},
                                 std::string_view owner_label = "EventBus");

  /// Whether both name the same history.
  friend bool operator==(const EventHistory& a, const EventHistory& b) noexcept;

  /// Internal.
  explicit EventHistory(std::shared_ptr<detail::HistoryStore> store) noexcept : store_(std::move(store)) {}

 private:
  std::shared_ptr<detail::HistoryStore> store_;
};

}  // namespace abxbus

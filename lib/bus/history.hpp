#pragma once

#include "bus/core.hpp"

#include <abxbus/event_history.hpp>

/// History of a bus: the listed slots of its log, and the rules by which slots are unlisted (H-HIST).
namespace abxbus::detail {

/// After the publication of `ticket`: evicts what the limit says (drop mode), prunes completed events (zero mode).
void make_room(BusCore* bus, std::uint64_t ticket) noexcept;
/// The event of this leg is about to become completed / has become completed.
void before_completion(Leg* leg) noexcept;
void after_completion(Leg* leg) noexcept;

/// Exact rule H-HIST-15: completed ones first, oldest first, then the oldest. Returns how many were removed.
std::size_t trim(BusCore* bus, std::uint64_t limit, const std::function<void(const BaseEvent&)>* on_remove) noexcept;
/// Unlists one event; false when it is not listed.
bool unlist(BusCore* bus, std::uint64_t ticket) noexcept;
/// The same by id.
bool unlist(BusCore* bus, const Uuid& id) noexcept;
/// Puts `event` into the place of a listed event of its id whose run is over, or of which there was none. False: there
/// is no such place.
bool replace_listed(BusCore* bus, const RecordPtr& event);
void clear_history(BusCore* bus) noexcept;
std::uint64_t history_size(const BusCore* bus) noexcept;

/// The listed events, oldest first; a consistent snapshot.
std::vector<RecordPtr> listed_events(BusCore* bus);
/// Walks listed events from the newest to the oldest until `visit` returns true. `visit` is called without any lock.
RecordPtr newest_first(BusCore* bus, std::uint64_t below, const std::function<bool(Record*)>& visit);

/// What an EventHistory handle names: a bus's log, or a list of its own.
class HistoryStore {
 public:
  virtual ~HistoryStore() = default;
  /// What tells two histories apart.
  virtual const void* identity() const noexcept = 0;
  virtual void add(RecordPtr record) = 0;
  virtual RecordPtr get(const Uuid& id) = 0;
  virtual bool remove(const Uuid& id) = 0;
  virtual std::size_t size() noexcept = 0;
  virtual void clear() = 0;
  virtual std::vector<RecordPtr> events() = 0;
  virtual std::optional<std::size_t> max_size() noexcept = 0;
  virtual void set_max_size(std::optional<std::size_t> size) noexcept = 0;
  virtual bool drop() noexcept = 0;
  virtual void set_drop(bool drop) noexcept = 0;
  virtual std::size_t trim(const std::function<void(const BaseEvent&)>& on_remove, std::string_view owner) = 0;
};

std::shared_ptr<HistoryStore> bus_history(BusCore* bus);

}  // namespace abxbus::detail

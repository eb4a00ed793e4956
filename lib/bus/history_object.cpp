#include "bus/emit.hpp"
#include "bus/history.hpp"
#include "bus/resolve.hpp"
#include "event/clock.hpp"
#include "event/log.hpp"

#include <abxbus/error.hpp>
#include <abxbus/event_history.hpp>

#include <algorithm>

/// EventHistory: the handle, and a history without a bus.
namespace abxbus {

namespace detail {

namespace {

/// A list of its own. A mutex guards it; callbacks and releases happen outside.
class OwnHistory final : public HistoryStore {
 public:
  OwnHistory(std::optional<std::size_t> size, bool drop) : max_size_(size), drop_(drop) {}

  const void* identity() const noexcept override { return this; }

  void add(RecordPtr record) override {
    RecordPtr replaced;
    const std::lock_guard lock(mutex_);
    const Uuid id = event_id_of(as_record(record.get()));
    for (RecordPtr& each : events_) {
      if (event_id_of(as_record(each.get())) != id) continue;
      replaced = std::move(each);
      each = std::move(record);
      return;
    }
    events_.push_back(std::move(record));
  }
  RecordPtr get(const Uuid& id) override {
    const std::lock_guard lock(mutex_);
    for (const RecordPtr& each : events_)
      if (event_id_of(as_record(each.get())) == id) return each;
    return {};
  }
  bool remove(const Uuid& id) override {
    RecordPtr removed;
    const std::lock_guard lock(mutex_);
    const auto place = std::find_if(events_.begin(), events_.end(),
                                    [&](const RecordPtr& each) { return event_id_of(as_record(each.get())) == id; });
    if (place == events_.end()) return false;
    removed = std::move(*place);
    events_.erase(place);
    return true;
  }
  std::size_t size() noexcept override {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }
  void clear() override {
    std::vector<RecordPtr> removed;
    const std::lock_guard lock(mutex_);
    removed.swap(events_);
  }
  std::vector<RecordPtr> events() override {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::optional<std::size_t> max_size() noexcept override {
    const std::lock_guard lock(mutex_);
    return max_size_;
  }
  void set_max_size(std::optional<std::size_t> size) noexcept override {
    const std::lock_guard lock(mutex_);
    max_size_ = size;
  }
  bool drop() noexcept override {
    const std::lock_guard lock(mutex_);
    return drop_;
  }
  void set_drop(bool drop) noexcept override {
    const std::lock_guard lock(mutex_);
    drop_ = drop;
  }
  std::size_t trim(const std::function<void(const BaseEvent&)>& on_remove, std::string_view owner) override {
    std::vector<RecordPtr> removed;
    bool warn = false;
    std::size_t limit = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!max_size_) return 0;
      limit = *max_size_;
      if (limit != 0 && (!drop_ || events_.size() <= limit)) return 0;
      const auto done = [](const RecordPtr& each) { return as_record(each.get())->completed(); };
      const auto over = [&] { return limit == 0 || events_.size() > limit; };
      for (std::size_t i = 0; i < events_.size() && over();) {
        if (done(events_[i])) {
          removed.push_back(std::move(events_[i]));
          events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
          ++i;
        }
      }
      while (limit != 0 && events_.size() > limit) {
        warn = !std::exchange(warned_, true) || warn;
        removed.push_back(std::move(events_.front()));
        events_.erase(events_.begin());
      }
    }
    if (warn)
      log(LogLevel::warning, "[abxbus] ⚠️ Bus " + std::string(owner) +
                                 " has exceeded max_history_size=" + std::to_string(limit) +
                                 " and is dropping oldest history entries (even uncompleted events). Increase "
                                 "max_history_size or set max_history_drop=false to reject.");
    if (on_remove)
      for (const RecordPtr& record : removed) on_remove(BaseEvent(record));
    return removed.size();
  }

 private:
  std::mutex mutex_;
  std::vector<RecordPtr> events_;
  std::optional<std::size_t> max_size_;
  bool drop_;
  bool warned_ = false;
};

/// The log of a bus. Keeps its memory, not the bus.
class BusHistory final : public HistoryStore {
 public:
  explicit BusHistory(BusCore* bus) noexcept : bus_(bus) { retain_core(bus); }
  ~BusHistory() override { release_core(bus_); }
  BusHistory(const BusHistory&) = delete;
  BusHistory& operator=(const BusHistory&) = delete;

  const void* identity() const noexcept override { return bus_; }
  void add(RecordPtr record) override {
    if (replace_listed(bus_, record)) return;
    unlist(bus_, event_id_of(as_record(record.get())));  // still queued: it is run, and forgotten here
    remember(bus_, std::move(record));
  }
  RecordPtr get(const Uuid& id) override {
    return newest_first(bus_, bus_->log.issued(), [&](Record* record) { return event_id_of(record) == id; });
  }
  bool remove(const Uuid& id) override { return unlist(bus_, id); }
  std::size_t size() noexcept override { return static_cast<std::size_t>(history_size(bus_)); }
  void clear() override { clear_history(bus_); }
  std::vector<RecordPtr> events() override { return listed_events(bus_); }
  std::optional<std::size_t> max_size() noexcept override {
    const std::uint64_t limit = bus_->max_history.load(std::memory_order_relaxed);
    if (limit == history_unlimited) return std::nullopt;
    return static_cast<std::size_t>(limit);
  }
  void set_max_size(std::optional<std::size_t> size) noexcept override {
    bus_->log.leave_ticket_order(bus_->in_order);
    if (size && *size == 0) bus_->zero_prune_pending.store(true, std::memory_order_release);
    bus_->max_history.store(size ? *size : history_unlimited, std::memory_order_release);
  }
  bool drop() noexcept override { return bus_->history_drop.load(std::memory_order_relaxed); }
  void set_drop(bool drop) noexcept override {
    bus_->log.leave_ticket_order(bus_->in_order);
    bus_->history_drop.store(drop, std::memory_order_release);
  }
  std::size_t trim(const std::function<void(const BaseEvent&)>& on_remove, std::string_view) override {
    const std::uint64_t limit = bus_->max_history.load(std::memory_order_relaxed);
    if (limit == history_unlimited) return 0;
    if (limit != 0 && (!bus_->history_drop.load(std::memory_order_relaxed) || history_size(bus_) <= limit)) return 0;
    bus_->log.leave_ticket_order(bus_->in_order);
    return detail::trim(bus_, limit, on_remove ? &on_remove : nullptr);
  }

 private:
  BusCore* bus_;
};

}  // namespace

std::shared_ptr<HistoryStore> bus_history(BusCore* bus) {
  return std::make_shared<BusHistory>(bus);
}

std::optional<BaseEvent> history_find(HistoryStore& store, std::string_view pattern,
                                      const FindOptions<BaseEvent>& options) {
  if (pattern.empty()) throw ValidationError("event pattern must not be empty", "pattern");
  if (!options.past.open()) return std::nullopt;
  const std::int64_t since = options.past.unbounded() ? INT64_MIN : now_ns() - nanoseconds(*options.past.length());
  const TypeKey* const key = pattern == "*" ? nullptr : intern_type(pattern);
  std::vector<RecordPtr> events = store.events();
  for (auto each = events.rbegin(); each != events.rend(); ++each) {
    const Record* const record = as_record(each->get());
    if (record->created_at < since || (key != nullptr && record->key != key)) continue;
    BaseEvent event(std::move(*each));
    if (!options.where || options.where(event)) return event;
  }
  return std::nullopt;
}

}  // namespace detail

EventHistory::EventHistory(std::optional<std::size_t> max_history_size, bool max_history_drop)
    : store_(std::make_shared<detail::OwnHistory>(max_history_size, max_history_drop)) {}
void EventHistory::add_event(BaseEvent event) {
  if (event.record() == nullptr) throw ValidationError("event must not be an empty handle", "event");
  store_->add(detail::RecordPtr::share(event.record()));
}
bool operator==(const EventHistory& a, const EventHistory& b) noexcept {
  return a.store_->identity() == b.store_->identity();
}
std::optional<BaseEvent> EventHistory::get_event(const Uuid& id) const {
  detail::RecordPtr record = store_->get(id);
  if (!record) return std::nullopt;
  return BaseEvent(std::move(record));
}
bool EventHistory::remove_event(const Uuid& id) {
  return store_->remove(id);
}
bool EventHistory::has_event(const Uuid& id) const {
  return static_cast<bool>(store_->get(id));
}
std::size_t EventHistory::size() const noexcept {
  return store_->size();
}
void EventHistory::clear() {
  store_->clear();
}
std::vector<BaseEvent> EventHistory::events() const {
  std::vector<BaseEvent> events;
  for (detail::RecordPtr& record : store_->events()) events.emplace_back(std::move(record));
  return events;
}
std::optional<std::size_t> EventHistory::max_history_size() const noexcept {
  return store_->max_size();
}
void EventHistory::set_max_history_size(std::optional<std::size_t> size) noexcept {
  store_->set_max_size(size);
}
bool EventHistory::max_history_drop() const noexcept {
  return store_->drop();
}
void EventHistory::set_max_history_drop(bool drop) noexcept {
  store_->set_drop(drop);
}
std::size_t EventHistory::trim_event_history(const std::function<void(const BaseEvent&)>& on_remove,
                                             std::string_view owner_label) {
  return store_->trim(on_remove, owner_label);
}

}  // namespace abxbus

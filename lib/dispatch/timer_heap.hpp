#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace abxbus::detail {

/// Called on the watchdog's thread: short, no user code. Times are CLOCK_MONOTONIC nanoseconds.
using TimerFunction = void (*)(void* context);

/// The watchdog's timers by due time. A mutex guards the map; nothing inside waits or calls out.
class TimerHeap {
 public:
  using Key = std::pair<std::int64_t, std::uint64_t>;  // due, unique number

  /// `wake`: the watchdog sleeps longer than until then and has to be told. While it is awake it is not: it plans its
  /// sleep under the same mutex, with this timer in the map.
  Key add(std::int64_t due_ns, TimerFunction function, void* context, bool& wake) {
    const std::lock_guard lock(mutex_);
    const Key key{due_ns, ++last_};
    timers_.emplace(key, Entry{function, context});
    wake = due_ns < planned_;
    return key;
  }
  /// Watchdog: until when to sleep; `limit`: what is due besides.
  std::int64_t plan(std::int64_t limit) {
    const std::lock_guard lock(mutex_);
    planned_ = timers_.empty() ? limit : std::min(limit, timers_.begin()->first.first);
    return planned_;
  }
  /// False: it has fired, or fires at this moment.
  bool remove(const Key& key) {
    const std::lock_guard lock(mutex_);
    return timers_.erase(key) != 0;
  }
  /// Takes one timer that is due.
  bool take_due(std::int64_t now_ns, TimerFunction& function, void*& context) {
    const std::lock_guard lock(mutex_);
    if (timers_.empty() || timers_.begin()->first.first > now_ns) return false;
    function = timers_.begin()->second.function;
    context = timers_.begin()->second.context;
    timers_.erase(timers_.begin());
    return true;
  }

 private:
  struct Entry {
    TimerFunction function;
    void* context;
  };
  std::mutex mutex_;
  std::map<Key, Entry> timers_;
  std::uint64_t last_ = 0;
  std::int64_t planned_ = INT64_MAX;  ///< end of the sleep planned last
};

}  // namespace abxbus::detail

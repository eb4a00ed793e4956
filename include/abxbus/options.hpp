#pragma once

#include <abxbus/domain.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/json_fwd.hpp>
#include <abxbus/modes.hpp>
#include <abxbus/timestamp.hpp>
#include <abxbus/uuid.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace abxbus {

/// Options of a bus. Unset (`std::nullopt`) takes the default named beside each member; 0 disables
/// (S-BUS-1, S-BUS-2). Durations are seconds; any `std::chrono` duration converts.
struct EventBusOptions {
  std::optional<std::string> id = {};  ///< UUID of the bus; unset: a new UUIDv7 (S-BUS-6)
  EventConcurrency event_concurrency = EventConcurrency::bus_serial;
  EventHandlerConcurrency event_handler_concurrency = EventHandlerConcurrency::serial;
  EventHandlerCompletion event_handler_completion = EventHandlerCompletion::all;
  std::optional<Seconds> event_timeout = {};               ///< unset: 60 s; 0: no timeout
  std::optional<Seconds> event_slow_timeout = {};          ///< unset: 300 s; 0: no warning
  std::optional<Seconds> event_handler_slow_timeout = {};  ///< unset: 30 s; 0: no warning
  std::optional<std::size_t> max_history_size = 100;       ///< unset: unlimited; 0: only unfinished events
  bool max_history_drop = false;                           ///< true: drop old events instead of rejecting new ones
  bool event_handler_detect_file_paths = true;
  bool warn_on_duplicate_handler_names = true;
  std::optional<Seconds> destroy_grace = {};          ///< unset: 5 s; 0: the destructor does not wait (T-CAN-33)
  std::optional<Seconds> inline_deadline_floor = {};  ///< unset: the executor's; 0: never inline (S-JMP-16)
  Domain domain = Domain::default_domain();           ///< scope of names and of the global lock (S-BUS-17)
  Executor executor = Executor::default_executor();
};

/// Options of one event. Precedence: these, then the static members of the event type, then the bus (S-PREC-2).
struct EventOptions {
  std::string event_type = {};     ///< empty: the type's own name
  std::string event_version = {};  ///< empty: the type's, else "0.0.1"
  std::optional<Seconds> event_timeout = {};
  std::optional<Seconds> event_slow_timeout = {};
  std::optional<EventConcurrency> event_concurrency = {};
  std::optional<Seconds> event_handler_timeout = {};
  std::optional<Seconds> event_handler_slow_timeout = {};
  std::optional<EventHandlerConcurrency> event_handler_concurrency = {};
  std::optional<EventHandlerCompletion> event_handler_completion = {};
  bool event_blocks_parent_completion = false;
  std::optional<Uuid> event_id = {};
  std::optional<Uuid> event_parent_id = {};
  std::optional<Timestamp> event_created_at = {};
};

/// Options of one registration (`on`).
struct HandlerOptions {
  std::string id = {};                 ///< empty: the UUIDv5 of D-ID-5, computed when first asked for
  std::string handler_name = {};       ///< empty: "anonymous"
  std::string handler_file_path = {};  ///< empty: `<path>:<line>` of the call when the bus detects file paths
  std::optional<Timestamp> handler_registered_at = {};  ///< unset: now
  std::optional<Seconds> handler_timeout = {};       ///< unset: the event's `event_handler_timeout`; 0: none of its own
  std::optional<Seconds> handler_slow_timeout = {};  ///< unset: event, then bus; 0: no warning
};

/// Options of `now()` and `wait()` (S-JMP-4, S-JMP-6, T-CAN-15).
struct WaitOptions {
  std::optional<Seconds> timeout = {};  ///< unset and 0: no limit; negative: ValidationError
  bool first_result = false;            ///< return as soon as one usable value is there
  std::stop_token stop_token = {};      ///< its stop ends this call with OperationCancelled
};

/// Options of the result accessors (T-RES-2). `R` is the value type of the accessor.
template <class R>
struct ResultOptions {
  /// Which results count; empty: those with a usable value (T-RES-4).
  std::function<bool(const std::optional<R>&, const EventResult&)> include = {};
  bool raise_if_any = true;    ///< throw when any handler failed
  bool raise_if_none = false;  ///< throw EventResultNoneError when nothing is included
  bool wait = true;            ///< false: judge what is there at this instant, start and wait for nothing
  std::stop_token stop_token = {};
};

/// A search window: `true` = unbounded, `false` = none, a duration = that long.
class Window {
 public:
  constexpr Window(bool unbounded) noexcept : unbounded_(unbounded) {}
  template <class Rep, class Period>
  constexpr Window(std::chrono::duration<Rep, Period> length) noexcept
      : length_(std::chrono::duration_cast<Seconds>(length)) {}
  constexpr bool unbounded() const noexcept { return unbounded_; }
  /// Length in seconds; nothing for an unbounded or a closed window.
  constexpr std::optional<Seconds> length() const noexcept { return length_; }
  constexpr bool open() const noexcept { return unbounded_ || (length_ && length_->count() > 0); }

 private:
  bool unbounded_ = false;
  std::optional<Seconds> length_ = {};
};

/// Options of `find` (H-FIND-6). `E` is `Event<T>` or `BaseEvent`.
template <class E>
struct FindOptions {
  Window past = true;
  Window future = false;
  std::function<bool(const E&)> where = {};
  std::stop_token stop_token = {};
};

}  // namespace abxbus

#pragma once

#include <abxbus/detail/invoke.hpp>
#include <abxbus/domain.hpp>
#include <abxbus/event.hpp>
#include <abxbus/event_handler.hpp>
#include <abxbus/event_history.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/memory.hpp>
#include <abxbus/options.hpp>
#include <abxbus/task.hpp>

#include <functional>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace abxbus {

/// Which lock guards an event's run on a bus (S-LCK-1).
enum class EventLock { none, bus, global };

class Forwarder;

namespace detail {
EventHandler register_handler(BusCore* core, std::string_view key, const EventTypeInfo* type, Callable callable,
                              HandlerOptions&& options, const std::source_location& where);
void off_key(BusCore* core, std::string_view key);
void off_entry(BusCore* core, std::string_view key, const EventHandler& handler);
void off_id(BusCore* core, std::string_view key, std::string_view id);
void off_identity(BusCore* core, std::string_view key, const void* identity);
RecordPtr emit_record(BusCore* core, RecordPtr record);
RecordPtr emit_fresh(BusCore* core, RecordPtr record);
RecordPtr find_blocking(BusCore* core, std::string_view pattern, Window past, Window future,
                        std::function<bool(RecordHead*)> where, const std::stop_token& stop);
FuturePtr find_future(BusCore* core, std::string_view pattern, Window past, Window future,
                      std::function<bool(RecordHead*)> where, const std::stop_token& stop);
RecordPtr take_event(FutureState& state) noexcept;

template <class E, class T>
std::function<bool(RecordHead*)> typed_where(std::function<bool(const E&)> where) {
  if constexpr (std::is_void_v<T>) {
    if (!where) return {};
    return [where = std::move(where)](RecordHead* record) { return where(E(RecordPtr::share(record))); };
  } else {
    return [where = std::move(where)](RecordHead* record) {
      return payload_is<T>(record) && (!where || where(E(RecordPtr::share(record))));
    };
  }
}
template <class E>
std::optional<E> found(RecordPtr record) {
  if (!record) return std::nullopt;
  return E(std::move(record));
}
}  // namespace detail

/// A reference to a bus: copyable, has every operation, keeps memory valid but not the bus alive. Once the owner is
/// gone (or after `destroy`) the operations of S-DST-5 throw EventBusDestroyedError; inspection keeps working. So a
/// handler may capture it. One pointer. Threads: any operation from any thread, also from inside handlers.
///
/// Deadlock rules: no library lock is held while user code runs, so any callback may call anything. `emit` never
/// waits. `wait()` for a serial event of the same bus inside a serial handler cannot succeed before that handler ends
/// (S-WAIT-3); use `now()`, which runs the event at once.
class EventBusRef {
 public:
  EventBusRef(const EventBusRef& other) noexcept;
  EventBusRef(EventBusRef&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  EventBusRef& operator=(EventBusRef other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~EventBusRef();

  // -- registration (S-REG) -------------------------------------------------------------------------------------
  /// Registers `function` for events of type `T`. It takes (const T&), (Event<T>) or (BaseEvent), optionally followed
  /// by std::stop_token, and returns void, a value, an optional, an event or a task. O(1) amortised.
  /// Errors: ValidationError (empty callable, bad option, id used under another key), EventBusDestroyedError.
  template <event_payload T, class F>
  EventHandler on(F&& function, HandlerOptions options = {},
                  std::source_location where = std::source_location::current()) const {
    const detail::EventTypeInfo& type = detail::event_type_info<T>();
    return detail::register_handler(core_, type.event_type, &type,
                                    detail::Callable::make<F, T, true>(std::forward<F>(function)), std::move(options),
                                    where);
  }
  /// The same with `T` taken from the callable's first parameter.
  template <class F>
  requires(!std::is_convertible_v<F, std::string_view>) EventHandler
      on(F&& function, HandlerOptions options = {}, std::source_location where = std::source_location::current())
  const {
    using T = detail::deduced_payload_t<F>;
    static_assert(
        !std::is_void_v<T>,
        "abxbus: on(f) needs a callable whose first parameter is (const T&) or (Event<T>); name the type with "
        "on<T>(f), or use on(\"*\", f)");
    return on<T>(std::forward<F>(function), std::move(options), where);
  }
  /// By event type name, or "*" for every event (S-REG-2).
  template <class F>
  EventHandler on(std::string_view pattern, F&& function, HandlerOptions options = {},
                  std::source_location where = std::source_location::current()) const {
    using T = detail::deduced_payload_t<F>;
    return detail::register_handler(core_, pattern, nullptr,
                                    detail::Callable::make<F, T, false>(std::forward<F>(function)), std::move(options),
                                    where);
  }

  /// Removes every handler of the key. Never blocks; a callable is destroyed when no run can reach it any more.
  template <event_payload T>
  void off() const {
    detail::off_key(core_, detail::event_type_info<T>().event_type);
  }
  void off(std::string_view pattern) const { detail::off_key(core_, pattern); }
  /// Removes one registration, by its entry; unknown ones are ignored (S-REG-12).
  void off(const EventHandler& handler) const { detail::off_entry(core_, {}, handler); }
  /// By entry, id, function pointer or shared callable, of one key.
  template <event_payload T, class X>
  void off(const X& which) const {
    off(detail::event_type_info<T>().event_type, which);
  }
  template <class X>
  void off(std::string_view pattern, const X& which) const {
    if constexpr (std::is_same_v<X, EventHandler>) {
      detail::off_entry(core_, pattern, which);
    } else if constexpr (std::is_convertible_v<const X&, std::string_view>) {
      detail::off_id(core_, pattern, which);
    } else {
      using F = std::decay_t<const X&>;
      static_assert(
          std::is_pointer_v<F> || requires(const X& x) { x.use_count(); },
          "abxbus: off() knows entries, ids, function pointers and shared callables; a lambda is removed "
          "through the EventHandler that on() returned");
      detail::off_identity(core_, pattern, detail::identity_of<F>(which));
    }
  }

  // -- emit (S-EMIT) --------------------------------------------------------------------------------------------
  /// Queues the event and returns it; never runs or waits for a handler. Errors: EventBusDestroyedError,
  /// ValidationError, EventBusHistoryLimitError; then nothing changed.
  template <event_payload T>
  Event<T> emit(T payload) const {
    return Event<T>(detail::emit_fresh(core_, detail::make_record(std::move(payload))));
  }
  template <event_payload T>
  Event<T> emit(T payload, const EventOptions& options) const {
    detail::RecordPtr record = detail::make_record(std::move(payload));
    detail::apply_options(record.get(), options);
    return Event<T>(detail::emit_fresh(core_, std::move(record)));
  }
  template <class T>
  Event<T> emit(Event<T> event) const {
    return Event<T>(detail::emit_record(core_, detail::RecordPtr::share(event.record())));
  }
  BaseEvent emit(BaseEvent event) const {
    return BaseEvent(detail::emit_record(core_, detail::RecordPtr::share(event.record())));
  }
  /// Alias of `emit`.
  template <class... A>
  auto dispatch(A&&... arguments) const {
    return emit(std::forward<A>(arguments)...);
  }
  /// A handler that emits every event it gets on this bus: `a.on("*", b.forwarder())` (H-FWD-1).
  Forwarder forwarder() const;

  // -- find (H-FIND) --------------------------------------------------------------------------------------------
  template <event_payload T>
  std::optional<Event<T>> find(FindOptions<Event<T>> options = {}) const {
    return detail::found<Event<T>>(
        detail::find_blocking(core_, detail::event_type_info<T>().event_type, options.past, options.future,
                              detail::typed_where<Event<T>, T>(std::move(options.where)), options.stop_token));
  }
  std::optional<BaseEvent> find(std::string_view pattern, FindOptions<BaseEvent> options = {}) const {
    return detail::found<BaseEvent>(
        detail::find_blocking(core_, pattern, options.past, options.future,
                              detail::typed_where<BaseEvent, void>(std::move(options.where)), options.stop_token));
  }
  template <event_payload T>
  future<std::optional<Event<T>>> find_async(FindOptions<Event<T>> options = {}) const {
    return {detail::find_future(core_, detail::event_type_info<T>().event_type, options.past, options.future,
                                detail::typed_where<Event<T>, T>(std::move(options.where)), options.stop_token),
            [](detail::FutureState& state) { return detail::found<Event<T>>(detail::take_event(state)); }};
  }
  future<std::optional<BaseEvent>> find_async(std::string_view pattern, FindOptions<BaseEvent> options = {}) const {
    return {detail::find_future(core_, pattern, options.past, options.future,
                                detail::typed_where<BaseEvent, void>(std::move(options.where)), options.stop_token),
            [](detail::FutureState& state) { return detail::found<BaseEvent>(detail::take_event(state)); }};
  }

  // -- idle (S-IDLE) --------------------------------------------------------------------------------------------
  /// True when nothing is queued or running on this bus, false at the timeout (with one warning). None, zero and
  /// negative timeouts: no limit. EventBusDestroyedError, OperationCancelled.
  bool wait_until_idle(std::optional<Seconds> timeout = {}, std::stop_token stop = {}) const;
  bool is_idle() const;
  bool is_idle_and_queue_empty() const noexcept;

  // -- end (S-DST) ----------------------------------------------------------------------------------------------
  /// Ends the bus at once, without waiting for running handlers. Idempotent.
  void destroy(bool clear = true) const noexcept;
  bool is_destroyed() const noexcept;
  /// Owner gone or destroyed.
  bool expired() const noexcept { return is_destroyed(); }

  // -- inspection -----------------------------------------------------------------------------------------------
  const std::string& name() const noexcept;
  const std::string& id() const noexcept;
  const std::string& label() const noexcept;
  /// The effective options, defaults filled in.
  EventBusOptions options() const;
  EventHistory event_history() const;
  /// Ids of the claimable events in queue order.
  std::vector<Uuid> pending_event_queue() const;
  std::vector<EventHandler> handlers() const;
  std::optional<EventHandler> handler(std::string_view id) const;
  /// Key -> handler ids in registration order; computes ids that nobody asked for yet (about 2 us each).
  std::vector<std::pair<std::string, std::vector<std::string>>> handlers_by_key() const;
  std::size_t handler_count() const noexcept;
  std::vector<BaseEvent> events_pending() const;
  std::vector<BaseEvent> events_started() const;
  std::vector<BaseEvent> events_completed() const;
  std::size_t find_waiter_count() const noexcept;
  EventLock resolve_event_lock(const BaseEvent& event) const;
  MemoryUse memory() const noexcept;

  friend bool operator==(const EventBusRef& a, const EventBusRef& b) noexcept { return a.core_ == b.core_; }

  /// Internal: takes over one reference.
  explicit EventBusRef(detail::BusCore* adopted) noexcept : core_(adopted) {}
  /// Internal.
  detail::BusCore* core() const noexcept { return core_; }

 protected:
  detail::BusCore* core_;
};

/// The owner of a bus. Its destructor destroys the bus and waits, at most `destroy_grace`, for handlers that are still
/// executing and are not on its own call chain (S-DST-1, T-CAN-33). Movable, not copyable.
class EventBus : public EventBusRef {
 public:
  /// ValidationError: bad name, id or duration; nothing is registered then. A name that a live bus of the domain has
  /// gets a suffix and a warning (S-BUS-10). Starts nothing.
  explicit EventBus(std::string_view name = {}, EventBusOptions options = {});
  EventBus(EventBus&& other) noexcept : EventBusRef(std::move(other)) {}
  EventBus& operator=(EventBus&& other) noexcept;
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;
  ~EventBus();

  /// Snapshot of the live buses of a domain (S-BUS-14).
  static std::vector<EventBusRef> all_instances(Domain domain = Domain::default_domain());
};

/// The handler that `forwarder()` returns.
class Forwarder {
 public:
  using abxbus_forwarder = void;
  explicit Forwarder(EventBusRef target) noexcept : target_(std::move(target)) {}
  BaseEvent operator()(BaseEvent event) const { return target_.emit(std::move(event)); }

 private:
  EventBusRef target_;
};

inline Forwarder EventBusRef::forwarder() const {
  return Forwarder(*this);
}

/// Removes its registration when it goes out of scope (S-REG-11).
class ScopedHandler {
 public:
  ScopedHandler(EventBusRef bus, EventHandler handler) noexcept : bus_(std::move(bus)), handler_(std::move(handler)) {}
  ScopedHandler(ScopedHandler&& other) noexcept = default;
  ScopedHandler& operator=(ScopedHandler&& other) noexcept {
    std::swap(bus_, other.bus_);
    std::swap(handler_, other.handler_);
    return *this;
  }
  ~ScopedHandler();
  const EventHandler& handler() const noexcept { return handler_; }

 private:
  EventBusRef bus_;
  EventHandler handler_;
};

template <class T>
future<Event<T>> Event<T>::now_async(WaitOptions options) const {
  return BaseEvent::now_async(std::move(options)).template as<Event>([](detail::FutureState& state) {
    return Event(detail::take_event(state));
  });
}
template <class T>
future<Event<T>> Event<T>::wait_async(WaitOptions options) const {
  return BaseEvent::wait_async(std::move(options)).template as<Event>([](detail::FutureState& state) {
    return Event(detail::take_event(state));
  });
}

}  // namespace abxbus

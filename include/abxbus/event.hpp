#pragma once

#include <abxbus/detail/event_type.hpp>
#include <abxbus/detail/record_head.hpp>
#include <abxbus/error.hpp>
#include <abxbus/event_result.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/json_fwd.hpp>
#include <abxbus/modes.hpp>
#include <abxbus/options.hpp>
#include <abxbus/timestamp.hpp>
#include <abxbus/uuid.hpp>

#include <compare>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace abxbus {

/// A reference-counted handle to one event, whatever its payload type. One pointer; copyable, usable from any thread;
/// `==` compares identity. Getters show the state at the moment of the call (S-MT-1). A moved-from or
/// default-constructed handle may only be assigned or destroyed.
class BaseEvent {
 public:
  BaseEvent() noexcept = default;

  /// An untyped event: `event_type` by name, payload as a JSON object (default: empty). ValidationError for a bad type
  /// name, a payload that is no object or carries reserved names, or a negative duration.
  static BaseEvent make(std::string_view event_type, json::ref payload = {}, EventOptions options = {});

  // -- metadata (D-EVT-2) ---------------------------------------------------------------------------------------
  std::string event_type() const;
  std::string event_version() const;
  std::optional<Seconds> event_timeout() const;
  std::optional<Seconds> event_slow_timeout() const;
  std::optional<EventConcurrency> event_concurrency() const;
  std::optional<Seconds> event_handler_timeout() const;
  std::optional<Seconds> event_handler_slow_timeout() const;
  std::optional<EventHandlerConcurrency> event_handler_concurrency() const;
  std::optional<EventHandlerCompletion> event_handler_completion() const;
  bool event_blocks_parent_completion() const noexcept;
  Uuid event_id() const noexcept;
  /// Labels of the buses that accepted the event, in acceptance order.
  std::vector<std::string> event_path() const;
  std::optional<Uuid> event_parent_id() const noexcept;
  std::optional<std::string> event_emitted_by_handler_id() const;
  /// Buses that accepted the event and have not finished it.
  std::size_t event_pending_bus_count() const noexcept;
  Timestamp event_created_at() const noexcept;
  EventStatus event_status() const noexcept;
  std::optional<Timestamp> event_started_at() const noexcept;
  std::optional<Timestamp> event_completed_at() const noexcept;

  /// Setters of the seven option fields; a change counts from the next decision on (S-PREC). Threads: any.
  /// ValidationError for a negative duration.
  void set_event_timeout(std::optional<Seconds> value) const;
  void set_event_slow_timeout(std::optional<Seconds> value) const;
  void set_event_concurrency(std::optional<EventConcurrency> value) const;
  void set_event_handler_timeout(std::optional<Seconds> value) const;
  void set_event_handler_slow_timeout(std::optional<Seconds> value) const;
  void set_event_handler_concurrency(std::optional<EventHandlerConcurrency> value) const;
  void set_event_handler_completion(std::optional<EventHandlerCompletion> value) const;

  // -- waiting --------------------------------------------------------------------------------------------------
  /// Asks for the event to be processed at once, ahead of everything queued, and waits for its completion on all
  /// buses (S-JMP). Never throws handler errors. May run handlers on this thread (S-JMP-16). TimeoutError,
  /// OperationCancelled, EventBusDestroyedError, ValidationError (negative timeout; no bus).
  BaseEvent now(WaitOptions options = {}) const;
  /// Waits without changing when or where the event runs (S-WAIT). Errors as `now`.
  BaseEvent wait(WaitOptions options = {}) const;
  /// Awaitable twins; they have started when they return. Include `abxbus/task.hpp`.
  future<BaseEvent> now_async(WaitOptions options = {}) const;
  future<BaseEvent> wait_async(WaitOptions options = {}) const;

  // -- results --------------------------------------------------------------------------------------------------
  /// The first included result in registration order (T-RES); waits as `now({.first_result = true})` for an event
  /// not started. Throws the single handler error, EventHandlerErrors, or EventResultNoneError as the options say.
  template <class R = json::value>
  std::optional<R> event_result(ResultOptions<R> options = {}) const;
  /// All included results; waits as `now()` first.
  template <class R = json::value>
  std::vector<std::optional<R>> event_results_list(ResultOptions<R> options = {}) const;
  /// Snapshot of all results; never waits.
  EventResults event_results() const;
  /// Errors of settled results in completion order; never waits.
  std::vector<std::exception_ptr> event_errors() const;

  // -- lineage --------------------------------------------------------------------------------------------------
  /// Emits a child of this event: on the bus that runs the current handler of this event, else on the first bus that
  /// accepted it (H-LIN-2, H-LIN-5). Errors as `EventBusRef::emit`; ValidationError without a bus.
  template <event_payload C>
  Event<C> emit(C child) const;
  template <event_payload C>
  Event<C> emit(C child, const EventOptions& options) const;
  template <class C>
  Event<C> emit(Event<C> child) const;
  BaseEvent emit(BaseEvent child) const;
  /// The bus that runs this handler, outside the first bus that accepted the event (H-FWD-16). ValidationError: none.
  EventBusRef event_bus() const;
  std::vector<BaseEvent> event_children() const;

  // -- payload --------------------------------------------------------------------------------------------------
  /// The payload as `T`; ValidationError when it does not fit (D-TEV-5).
  template <class T>
  T payload_as() const;
  /// This event as `Event<T>`; nothing when its type name differs from T's or the payload does not decode.
  template <class T>
  std::optional<Event<T>> as() const;

  friend bool operator==(const BaseEvent& a, const BaseEvent& b) noexcept { return a.record_.get() == b.record_.get(); }

  /// Internal.
  explicit BaseEvent(detail::RecordPtr record) noexcept : record_(std::move(record)) {}
  /// Internal.
  detail::RecordHead* record() const noexcept { return record_.get(); }

 protected:
  detail::RecordPtr record_;
};

/// `BaseEvent` with a typed payload: `event->member`, const (one pointer, like its base).
template <class T>
class Event : public BaseEvent {
  static_assert(event_payload<T>, "abxbus: an event payload is a struct: an object type, movable, not an event handle");

 public:
  using payload_type = T;
  Event() noexcept = default;

  const T* operator->() const { return &detail::payload_view<T>(record_.get()); }
  const T& operator*() const { return detail::payload_view<T>(record_.get()); }

  Event now(WaitOptions options = {}) const {
    BaseEvent::now(std::move(options));
    return *this;
  }
  Event wait(WaitOptions options = {}) const {
    BaseEvent::wait(std::move(options));
    return *this;
  }
  future<Event> now_async(WaitOptions options = {}) const;
  future<Event> wait_async(WaitOptions options = {}) const;

  std::optional<event_result_t<T>> event_result() const { return event_result(ResultOptions<event_result_t<T>>{}); }
  std::optional<event_result_t<T>> event_result(ResultOptions<event_result_t<T>> options) const {
    return BaseEvent::event_result<event_result_t<T>>(std::move(options));
  }
  template <class R>
  std::optional<R> event_result(ResultOptions<R> options = {}) const {
    return BaseEvent::event_result<R>(std::move(options));
  }
  std::vector<std::optional<event_result_t<T>>> event_results_list() const {
    return event_results_list(ResultOptions<event_result_t<T>>{});
  }
  std::vector<std::optional<event_result_t<T>>> event_results_list(ResultOptions<event_result_t<T>> options) const {
    return BaseEvent::event_results_list<event_result_t<T>>(std::move(options));
  }
  template <class R>
  std::vector<std::optional<R>> event_results_list(ResultOptions<R> options = {}) const {
    return BaseEvent::event_results_list<R>(std::move(options));
  }

  /// Internal.
  explicit Event(detail::RecordPtr record) noexcept : BaseEvent(std::move(record)) {}
};

namespace detail {

/// Validates and stores the options of an instance; throws ValidationError before anything changed.
void apply_options(RecordHead* record, const EventOptions& options);
RecordPtr emit_child(RecordHead* parent, RecordPtr child);
void now_blocking(RecordHead* record, WaitOptions& options);
void wait_blocking(RecordHead* record, WaitOptions& options);

/// A fresh record with the payload moved in.
template <class T>
RecordPtr make_record(T&& payload) {
  using U = std::remove_cvref_t<T>;
  RecordHead* record = new_record(event_type_info<U>());
  if constexpr (std::is_nothrow_constructible_v<U, T>) {
    ::new (payload_of(record)) U(std::forward<T>(payload));
  } else {
    try {
      ::new (payload_of(record)) U(std::forward<T>(payload));
    } catch (...) {
      discard_record(record);
      throw;
    }
  }
  return RecordPtr(record);
}

}  // namespace detail

/// An event that no bus has accepted yet. ValidationError for bad options.
template <event_payload T>
Event<T> make_event(T payload) {
  return Event<T>(detail::make_record(std::move(payload)));
}
template <event_payload T>
Event<T> make_event(T payload, const EventOptions& options) {
  Event<T> event(detail::make_record(std::move(payload)));
  detail::apply_options(event.record(), options);
  return event;
}

template <event_payload C>
Event<C> BaseEvent::emit(C child) const {
  return Event<C>(detail::emit_child(record_.get(), detail::make_record(std::move(child))));
}
template <event_payload C>
Event<C> BaseEvent::emit(C child, const EventOptions& options) const {
  return Event<C>(detail::emit_child(record_.get(), std::move(make_event(std::move(child), options).record_)));
}
template <class C>
Event<C> BaseEvent::emit(Event<C> child) const {
  return Event<C>(detail::emit_child(record_.get(), std::move(static_cast<BaseEvent&>(child).record_)));
}

template <class R>
std::optional<R> BaseEvent::event_result(ResultOptions<R> options) const {
  const EventResults results = detail::accessor_results(record_.get(), true, options.wait, options.stop_token);
  return detail::pick_first<R>(results, options, record_.get());
}
template <class R>
std::vector<std::optional<R>> BaseEvent::event_results_list(ResultOptions<R> options) const {
  const EventResults results = detail::accessor_results(record_.get(), false, options.wait, options.stop_token);
  return detail::pick_all<R>(results, options, record_.get());
}

template <class T>
T BaseEvent::payload_as() const {
  return detail::payload_view<T>(record_.get());
}
template <class T>
std::optional<Event<T>> BaseEvent::as() const {
  if (!detail::payload_is<T>(record_.get())) return std::nullopt;
  return Event<T>(record_);
}

}  // namespace abxbus

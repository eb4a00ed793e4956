#pragma once

#include <abxbus/detail/coroutine.hpp>
#include <abxbus/detail/event_type.hpp>
#include <abxbus/detail/value.hpp>
#include <abxbus/event.hpp>
#include <abxbus/task.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace abxbus::detail {

/// The token of the handler run that executes here; makes its stop source.
std::stop_token current_stop_token();

/// One call of a handler, as the generated invokers see it.
class Invocation {
 public:
  explicit Invocation(RecordHead* record) noexcept : record_(record) {}
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;
  RecordHead* record() const noexcept { return record_; }
  /// The payload does not decode as the handler's type: records EventHandlerPayloadSchemaError (D-TEV-6).
  void reject_payload(const ValidationError& reason);

  Value result;                                                  ///< outcome of a plain handler
  std::coroutine_handle<RootTask::promise_type> task = nullptr;  ///< a coroutine handler, not started yet

 private:
  RecordHead* record_;
};

/// How to call, destroy and identify one callable type.
struct CallableOps {
  void (*invoke)(void* callable, Invocation& call);
  void (*destroy)(void* callable) noexcept;
  void (*relocate)(void* from, void* to) noexcept;
  bool is_forwarder;
};

/// A type-erased handler; 48 bytes inline. Empty after a move.
class Callable {
 public:
  static constexpr std::size_t inline_size = 48;
  Callable() noexcept = default;
  Callable(Callable&& other) noexcept : ops_(std::exchange(other.ops_, nullptr)), identity_(other.identity_) {
    if (ops_ != nullptr) ops_->relocate(other.storage_, storage_);
  }
  Callable& operator=(Callable&& other) noexcept {
    if (this != &other) {
      reset();
      ops_ = std::exchange(other.ops_, nullptr);
      identity_ = other.identity_;
      if (ops_ != nullptr) ops_->relocate(other.storage_, storage_);
    }
    return *this;
  }
  ~Callable() { reset(); }
  void reset() noexcept {
    if (const CallableOps* ops = std::exchange(ops_, nullptr)) ops->destroy(storage_);
  }
  explicit operator bool() const noexcept { return ops_ != nullptr; }
  void operator()(Invocation& call) { ops_->invoke(storage_, call); }
  const void* identity() const noexcept { return identity_; }
  bool is_forwarder() const noexcept { return ops_ != nullptr && ops_->is_forwarder; }

  template <class F, class T, bool Typed>
  static Callable make(F&& function);

 private:
  const CallableOps* ops_ = nullptr;
  const void* identity_ = nullptr;
  alignas(std::max_align_t) unsigned char storage_[inline_size];
};

// -- identity of callables (S-REG-11): function pointers and shared callables ------------------------------------

template <class F>
const void* identity_of(const F& function) noexcept {
  if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>) {
    return reinterpret_cast<const void*>(function);
  } else if constexpr (requires {
                         function.get();
                         *function;
                         function.use_count();
                       }) {
    return function.get();
  } else {
    return nullptr;
  }
}

template <class F>
bool callable_is_empty(const F& function) noexcept {
  if constexpr (std::is_function_v<F>) {
    return false;
  } else if constexpr (requires { function == nullptr; }) {
    return function == nullptr;
  } else {
    return false;
  }
}

/// A shared callable is called through its pointer.
template <class F>
decltype(auto) callee(F& function) noexcept {
  if constexpr (requires {
                  function.get();
                  *function;
                  function.use_count();
                }) {
    return *function;
  } else {
    return (function);
  }
}
template <class F>
using callee_t = decltype(callee(std::declval<F&>()));

// -- which arguments a callable takes ----------------------------------------------------------------------------

template <class F, class A>
inline constexpr bool takes =
    std::is_invocable_v<callee_t<F>, A> || std::is_invocable_v<callee_t<F>, A, std::stop_token>;

/// Calls with or without the trailing stop token.
template <class F, class A>
decltype(auto) call_with(F& function, A&& argument) {
  if constexpr (std::is_invocable_v<callee_t<F>, A, std::stop_token>) {
    return std::invoke(callee(function), std::forward<A>(argument), current_stop_token());
  } else {
    return std::invoke(callee(function), std::forward<A>(argument));
  }
}

/// First parameter of a callable that is not overloaded, for `bus.on(f)`.
template <class F>
struct FirstParameter;
template <class R, class A, class... Rest>
struct FirstParameter<R (*)(A, Rest...)> {
  using type = A;
};
template <class R, class A, class... Rest>
struct FirstParameter<R (*)(A, Rest...) noexcept> {
  using type = A;
};
template <class C, class R, class A, class... Rest>
struct FirstParameter<R (C::*)(A, Rest...)> {
  using type = A;
};
template <class C, class R, class A, class... Rest>
struct FirstParameter<R (C::*)(A, Rest...) const> {
  using type = A;
};
template <class C, class R, class A, class... Rest>
struct FirstParameter<R (C::*)(A, Rest...) noexcept> {
  using type = A;
};
template <class C, class R, class A, class... Rest>
struct FirstParameter<R (C::*)(A, Rest...) const noexcept> {
  using type = A;
};
template <class F>
requires requires {
  &F::operator();
}
struct FirstParameter<F> : FirstParameter<decltype(&F::operator())> {};
template <class F>
requires requires {
  &F::element_type::operator();
}
struct FirstParameter<F> : FirstParameter<decltype(&F::element_type::operator())> {};

template <class P>
struct PayloadOfParameter {
  using type = std::conditional_t<event_payload<P>, P, void>;
};
template <class T>
struct PayloadOfParameter<Event<T>> {
  using type = T;
};
template <>
struct PayloadOfParameter<BaseEvent> {
  using type = void;
};

/// The event type that a callable's first parameter names; void when it names none.
template <class F>
struct DeducedPayload {
  using type = void;
};
template <class F>
requires requires {
  typename FirstParameter<F>::type;
}
struct DeducedPayload<F> {
  using type = typename PayloadOfParameter<std::remove_cvref_t<typename FirstParameter<F>::type>>::type;
};
template <class F>
using deduced_payload_t = typename DeducedPayload<std::decay_t<F>>::type;

// -- what a returned object becomes (T-HND-5, T-HND-8, T-HND-9, T-HND-23) ----------------------------------------

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class R>
inline constexpr bool is_nothing = std::is_void_v<R> || std::same_as<R, std::nullptr_t> ||
                                   std::same_as<R, std::nullopt_t> || std::same_as<R, std::monostate>;

bool json_is_null(const json::value& value) noexcept;

/// `Declared`: the event's result type, void when the registration has none.
template <class Declared, class R>
Value to_value(R&& returned) {
  using U = std::remove_cvref_t<R>;
  if constexpr (is_nothing<U>) {
    return {};
  } else if constexpr (IsOptional<U>::value) {
    if (!returned) return {};
    return to_value<Declared>(*std::forward<R>(returned));
  } else if constexpr (std::same_as<U, std::exception_ptr>) {
    if (!returned) return {};
    return Value::make(std::forward<R>(returned), ValueKind::error);
  } else if constexpr (std::is_base_of_v<BaseEvent, U>) {
    return Value::make(BaseEvent(std::forward<R>(returned)), ValueKind::event);
  } else if constexpr (std::same_as<U, json::value>) {
    if (json_is_null(returned)) return {};
    return Value::make(std::forward<R>(returned), ValueKind::json);
  } else if constexpr (!std::is_void_v<Declared>) {
    static_assert(std::is_convertible_v<R, Declared>,
                  "abxbus: this handler must return something convertible to the event's event_result_type, an "
                  "optional of it, void, an event, or a json::value");
    return Value::make(static_cast<Declared>(std::forward<R>(returned)));
  } else if constexpr (std::is_convertible_v<R, std::string_view> && !std::same_as<U, std::string>) {
    return Value::make(std::string(std::string_view(std::forward<R>(returned))));
  } else {
    static_assert(codec::writable<U>, "abxbus: this handler returns a type that has no JSON form");
    return Value::make(std::forward<R>(returned));
  }
}

template <class T>
inline constexpr bool is_task_of_nothing = std::same_as<T, task<void>>;

/// Runs a coroutine handler. `argument` lives here until the handler is over, so a handler may take it by reference;
/// the callable lives in its registration, which the run keeps.
template <class Declared, class F, class A>
RootTask run_root(F& function, A argument) {
  auto handler = call_with(function, std::forward<A>(argument));
  if constexpr (is_task_of_nothing<decltype(handler)>) {
    co_await std::move(handler);
    co_return Value{};
  } else {
    co_return to_value<Declared>(co_await std::move(handler));
  }
}

/// Calls the handler and records what it returned.
template <class Declared, class F, class A>
void call_and_record(F& function, A&& argument, Invocation& call) {
  using R = decltype(call_with(function, std::forward<A>(argument)));
  using U = std::remove_cvref_t<R>;
  if constexpr (IsTask<U>::value) {
    call.task = run_root<Declared, F, A>(function, std::forward<A>(argument)).handle();
  } else if constexpr (std::is_void_v<R>) {
    call_with(function, std::forward<A>(argument));
  } else {
    call.result = to_value<Declared>(call_with(function, std::forward<A>(argument)));
  }
}

/// The invoker of `F` registered for payload `T` (void: untyped). `Typed`: results are checked at compile time.
template <class F, class T, bool Typed>
void invoke_handler(F& function, Invocation& call) {
  if constexpr (std::is_void_v<T>) {
    static_assert(
        takes<F, BaseEvent>,
        "abxbus: a handler takes (const T&), (Event<T>) or (BaseEvent), optionally followed by std::stop_token");
    call_and_record<void>(function, BaseEvent(RecordPtr::share(call.record())), call);
  } else {
    using Declared = std::conditional_t<Typed && ResultTypeOf<T>::declared, event_result_t<T>, void>;
    static_assert(
        takes<F, Event<T>> || takes<F, const T&> || takes<F, BaseEvent>,
        "abxbus: a handler takes (const T&), (Event<T>) or (BaseEvent), optionally followed by std::stop_token");
    const T* payload = nullptr;
    try {
      payload = &payload_view<T>(call.record());
    } catch (const ValidationError& reason) {
      call.reject_payload(reason);
      return;
    }
    if constexpr (takes<F, Event<T>>) {
      call_and_record<Declared>(function, Event<T>(RecordPtr::share(call.record())), call);
    } else if constexpr (takes<F, const T&>) {
      call_and_record<Declared>(function, *payload, call);
    } else {
      call_and_record<Declared>(function, BaseEvent(RecordPtr::share(call.record())), call);
    }
  }
}

template <class F>
concept has_forwarder_tag = requires {
  typename F::abxbus_forwarder;
};

template <class F, class T, bool Typed>
struct InlineCallable {
  static void invoke(void* storage, Invocation& call) { invoke_handler<F, T, Typed>(*static_cast<F*>(storage), call); }
  static void destroy(void* storage) noexcept { static_cast<F*>(storage)->~F(); }
  static void relocate(void* from, void* to) noexcept {
    ::new (to) F(std::move(*static_cast<F*>(from)));
    static_cast<F*>(from)->~F();
  }
  static constexpr CallableOps ops{&invoke, &destroy, &relocate, has_forwarder_tag<F>};
};

template <class F, class T, bool Typed>
struct HeapCallable {
  static F*& pointer(void* storage) noexcept { return *static_cast<F**>(storage); }
  static void invoke(void* storage, Invocation& call) { invoke_handler<F, T, Typed>(*pointer(storage), call); }
  static void destroy(void* storage) noexcept { delete pointer(storage); }
  static void relocate(void* from, void* to) noexcept { ::new (to) F*(pointer(from)); }
  static constexpr CallableOps ops{&invoke, &destroy, &relocate, has_forwarder_tag<F>};
};

template <class F, class T, bool Typed>
Callable Callable::make(F&& function) {
  using U = std::decay_t<F>;
  Callable result;
  if (callable_is_empty(function)) return result;
  if constexpr (sizeof(U) <= inline_size && alignof(U) <= alignof(std::max_align_t) &&
                std::is_nothrow_move_constructible_v<U>) {
    ::new (static_cast<void*>(result.storage_)) U(std::forward<F>(function));
    result.ops_ = &InlineCallable<U, T, Typed>::ops;
    result.identity_ = identity_of(*reinterpret_cast<U*>(result.storage_));
  } else {
    U* object = new U(std::forward<F>(function));
    ::new (static_cast<void*>(result.storage_)) U*(object);
    result.ops_ = &HeapCallable<U, T, Typed>::ops;
    result.identity_ = identity_of(*object);
  }
  return result;
}

}  // namespace abxbus::detail

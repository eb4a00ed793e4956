#pragma once

#include <abxbus/detail/codec.hpp>
#include <abxbus/detail/record_head.hpp>
#include <abxbus/detail/reflect.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/json_fwd.hpp>

#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>

namespace abxbus {

namespace detail {

template <class T>
struct IsTask : std::false_type {};
template <class T>
struct IsTask<task<T>> : std::true_type {};

template <class T>
struct ResultTypeOf {
  using type = json::value;
  static constexpr bool declared = false;
};
template <class T>
requires requires {
  typename T::event_result_type;
}
struct ResultTypeOf<T> {
  static constexpr bool declared = !std::is_void_v<typename T::event_result_type>;
  using type = std::conditional_t<declared, typename T::event_result_type, json::value>;
};

}  // namespace detail

/// What can be the payload of an event: a movable struct (D-TEV-1).
template <class T>
concept event_payload =
    std::is_class_v<T> && std::same_as<T, std::remove_cvref_t<T>> && std::is_move_constructible_v<T> &&
    std::is_nothrow_destructible_v<T> && !std::is_base_of_v<BaseEvent, T> &&
    !detail::IsTask<T>::value;

/// The result type that `T` declares (`event_result_type`), else a JSON value.
template <class T>
using event_result_t = typename detail::ResultTypeOf<T>::type;

namespace detail {

template <class T>
constexpr std::string_view declared_event_type() noexcept {
  if constexpr (requires { std::string_view(T::event_type); }) {
    return std::string_view(T::event_type);
  } else {
    return reflect::type_name<T>();
  }
}

template <class T>
constexpr TypeDefaults declared_defaults() noexcept {
  TypeDefaults defaults;
  if constexpr (requires { std::string_view(T::event_version); }) defaults.event_version = T::event_version;
  if constexpr (requires { Seconds(T::event_timeout); }) defaults.event_timeout = Seconds(T::event_timeout);
  if constexpr (requires { Seconds(T::event_slow_timeout); })
    defaults.event_slow_timeout = Seconds(T::event_slow_timeout);
  if constexpr (requires { EventConcurrency(T::event_concurrency); }) defaults.event_concurrency = T::event_concurrency;
  if constexpr (requires { Seconds(T::event_handler_timeout); })
    defaults.event_handler_timeout = Seconds(T::event_handler_timeout);
  if constexpr (requires { Seconds(T::event_handler_slow_timeout); })
    defaults.event_handler_slow_timeout = Seconds(T::event_handler_slow_timeout);
  if constexpr (requires { EventHandlerConcurrency(T::event_handler_concurrency); })
    defaults.event_handler_concurrency = T::event_handler_concurrency;
  if constexpr (requires { EventHandlerCompletion(T::event_handler_completion); })
    defaults.event_handler_completion = T::event_handler_completion;
  if constexpr (requires { bool(T::event_blocks_parent_completion); })
    defaults.event_blocks_parent_completion = T::event_blocks_parent_completion;
  return defaults;
}

template <class T>
inline constexpr TypeDefaults type_defaults = declared_defaults<T>();

template <class T>
void destroy_payload(void* payload) noexcept {
  static_cast<T*>(payload)->~T();
}

template <class T>
constexpr codec::encode_fn encoder_of() noexcept {
  if constexpr (codec::writable<T>) {
    return &codec::encode_as<T>;
  } else {
    return nullptr;
  }
}
template <class T>
constexpr codec::decode_fn decoder_of() noexcept {
  if constexpr (codec::readable<T>) {
    return &codec::decode_as<T>;
  } else {
    return nullptr;
  }
}

template <class T>
struct ValueEncoder {
  static constexpr codec::encode_fn function = encoder_of<T>();
};

template <class T>
inline constinit EventTypeInfo event_type_info_of{declared_event_type<T>(),
                                                  &type_defaults<T>,
                                                  sizeof(T),
                                                  &typeid(T),
                                                  std::is_trivially_destructible_v<T> ? nullptr : &destroy_payload<T>,
                                                  encoder_of<T>(),
                                                  decoder_of<T>()};

template <class T>
const EventTypeInfo& event_type_info() noexcept {
  static_assert(alignof(T) <= alignof(std::max_align_t), "abxbus: event payloads may not be over-aligned");
  return event_type_info_of<T>;
}

/// The payload decoded as `wanted`, made on first use and kept with the event. Throws ValidationError.
const void* decoded_view(RecordHead* record, const EventTypeInfo& wanted);

/// The payload of any event as `T`: in place when it is a `T`, else decoded once and kept. Throws ValidationError.
template <class T>
const T& payload_view(RecordHead* record) {
  const EventTypeInfo& wanted = event_type_info<T>();
  if (record->type == &wanted || *record->type->type == typeid(T)) [[likely]]
    return *static_cast<const T*>(payload_of(record));
  return *static_cast<const T*>(decoded_view(record, wanted));
}

bool payload_decodes(RecordHead* record, const EventTypeInfo& wanted) noexcept;

/// Whether the event's type name is T's and its payload is or decodes as `T`.
template <class T>
bool payload_is(RecordHead* record) noexcept {
  return record->type == &event_type_info<T>() || payload_decodes(record, event_type_info<T>());
}

}  // namespace detail
}  // namespace abxbus

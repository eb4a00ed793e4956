#pragma once

#include <abxbus/detail/codec_io.hpp>
#include <abxbus/detail/codec_support.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace abxbus::detail::codec {

template <class T>
void write(Writer& writer, const T& value);

/// The value of a described enumerator without name is rejected.
template <class T>
void write_enum(Writer& writer, T value) {
  constexpr auto names = abxbus_describe_enum_names(reflect::Tag<T>{});
  constexpr auto values = abxbus_describe_enum_values(reflect::Tag<T>{});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == value) return writer.string(names[i]);
  }
  writer.reject("declared enum value");
}

template <class Key, class Mapped>
void write_entry(Writer& writer, const Key& key, const Mapped& mapped) {
  if constexpr (is_text<Key>) {
    writer.key(key);
    write(writer, mapped);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<Key>, std::int64_t, std::uint64_t>;
    const KeyText text(static_cast<Wide>(key));
    writer.key(text.view());
    write(writer, mapped);
  }
}

template <class T>
void write_time(Writer& writer, const T& value) {
  using Duration = typename T::duration;
  if constexpr (std::is_integral_v<typename Duration::rep>) {
    writer.time(static_cast<std::int64_t>(value.time_since_epoch().count()), Duration::period::num,
                Duration::period::den);
  } else {
    write_time(writer, std::chrono::time_point_cast<std::chrono::nanoseconds>(value));
  }
}

/// The members of a struct into the object that is open.
template <class T>
void write_members(Writer& writer, const T& value) {
  reflect::for_each_member(value, [&writer](std::string_view name, const auto& member) {
    writer.key(name);
    write(writer, member);
  });
}

/// Writes `value` as one JSON value. Throws ValidationError (D-JSON-5).
template <class T>
void write(Writer& writer, const T& value) {
  static_assert(writable<T>, "abxbus: this type has no JSON form");
  constexpr TypeKind kind = type_kind<T>;
  if constexpr (kind == TypeKind::structure) {
    writer.begin_object(reflect::member_count<T>);
    write_members(writer, value);
    writer.end_object();
  } else if constexpr (kind == TypeKind::boolean) {
    writer.boolean(value);
  } else if constexpr (kind == TypeKind::integer) {
    if constexpr (std::is_signed_v<T>) {
      writer.int64(value);
    } else {
      writer.uint64(value);
    }
  } else if constexpr (kind == TypeKind::floating) {
    writer.number(static_cast<double>(value));
  } else if constexpr (kind == TypeKind::text) {
    writer.string(std::string_view(value.data(), value.size()));
  } else if constexpr (kind == TypeKind::text_view) {
    if constexpr (std::is_pointer_v<T>) {
      if (value == nullptr) writer.reject("string");
    }
    writer.string(value);
  } else if constexpr (kind == TypeKind::null) {
    writer.null();
  } else if constexpr (kind == TypeKind::raw) {
    if constexpr (std::is_same_v<T, json::ref>) {
      writer.raw(value.get());
    } else {
      writer.raw(value);
    }
  } else if constexpr (kind == TypeKind::enumeration) {
    write_enum(writer, value);
  } else if constexpr (kind == TypeKind::optional) {
    if (value) {
      write(writer, *value);
    } else {
      writer.null();
    }
  } else if constexpr (kind == TypeKind::sequence || kind == TypeKind::set || kind == TypeKind::fixed) {
    if constexpr (std::is_array_v<T>) {
      writer.begin_array(fixed_size<T>);
    } else {
      writer.begin_array(value.size());
    }
    for (const auto& element : value) write<element_of<T>>(writer, element);
    writer.end_array();
  } else if constexpr (kind == TypeKind::tuple) {
    writer.begin_array(std::tuple_size<T>::value);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      using std::get;
      (write(writer, get<I>(value)), ...);
    }
    (std::make_index_sequence<std::tuple_size<T>::value>{});
    writer.end_array();
  } else if constexpr (kind == TypeKind::map) {
    writer.begin_object(value.size());
    for (const auto& [key, mapped] : value)
      write_entry<typename T::key_type, typename T::mapped_type>(writer, key, mapped);
    writer.end_object();
  } else if constexpr (kind == TypeKind::variant) {
    if (value.valueless_by_exception()) writer.reject("value");
    std::visit([&writer](const auto& held) { write(writer, held); }, value);
  } else if constexpr (kind == TypeKind::time) {
    write_time(writer, value);
  } else {
    static_assert(kind == TypeKind::duration);
    writer.number(std::chrono::duration<double>(value).count());
  }
}

}  // namespace abxbus::detail::codec

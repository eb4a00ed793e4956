#pragma once

#include <abxbus/detail/codec_io.hpp>
#include <abxbus/detail/codec_support.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

/// Reading goes into an existing object and reports a mismatch by return value, because a variant tries alternatives;
/// only the entry points in codec.hpp throw.

namespace abxbus::detail::codec {

template <class T>
bool read_into(Reader from, T& to, Failure& failure);

template <class T>
bool read_integer(Reader from, T& to, Failure& failure) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_signed_v<T>) {
    std::int64_t wide = 0;
    if (!read_signed(from, Limits::min(), Limits::max(), wide, failure)) return false;
    to = static_cast<T>(wide);
  } else {
    std::uint64_t wide = 0;
    if (!read_unsigned(from, Limits::max(), wide, failure)) return false;
    to = static_cast<T>(wide);
  }
  return true;
}

template <class T>
bool read_integer_key(std::string_view text, T& to, Failure& failure) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_signed_v<T>) {
    std::int64_t wide = 0;
    if (!read_key(text, Limits::min(), Limits::max(), wide, failure)) return false;
    to = static_cast<T>(wide);
  } else {
    std::uint64_t wide = 0;
    if (!read_key(text, Limits::max(), wide, failure)) return false;
    to = static_cast<T>(wide);
  }
  return true;
}

template <class T>
bool read_enum(Reader from, T& to, Failure& failure) {
  static constexpr auto names = abxbus_describe_enum_names(reflect::Tag<T>{});
  static constexpr auto values = abxbus_describe_enum_values(reflect::Tag<T>{});
  std::size_t index = 0;
  if (!read_name(from, names.items, names.size(), index, failure)) return false;
  to = values[index];
  return true;
}

template <class T>
bool read_optional(Reader from, T& to, Failure& failure) {
  if (from.is_null()) {
    to.reset();
    return true;
  }
  if constexpr (smart_pointer<T>) {
    using Element = element_of<T>;
    T made;
    auto* element = new Element();
    made.reset(element);
    if (!read_into(from, *element, failure)) return false;
    to = std::move(made);
    return true;
  } else {
    return read_into(from, to.emplace(), failure);
  }
}

template <class T>
bool read_elements(Reader from, T& to, Failure& failure) {
  if (!read_array(from, failure)) return false;
  to.clear();
  const std::size_t count = from.size();
  if constexpr (requires { to.reserve(count); }) to.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    element_of<T> element = element_of<T>();
    if (!read_into(from.at(i), element, failure)) return failure.in_element(i);
    if constexpr (type_kind<T> == TypeKind::set) {
      to.insert(std::move(element));
    } else {
      to.push_back(std::move(element));
    }
  }
  return true;
}

template <class T>
bool read_fixed(Reader from, T& to, Failure& failure) {
  if (!read_array_of(from, fixed_size<T>, failure)) return false;
  std::size_t i = 0;
  for (auto& element : to) {
    if (!read_into(from.at(i), element, failure)) return failure.in_element(i);
    ++i;
  }
  return true;
}

template <class T, std::size_t... I>
bool read_tuple(Reader from, T& to, Failure& failure, std::index_sequence<I...>) {
  using std::get;
  return read_array_of(from, sizeof...(I), failure) &&
         ((read_into(from.at(I), get<I>(to), failure) || failure.in_element(I)) && ...);
}

template <class T>
bool read_map(Reader from, T& to, Failure& failure) {
  if (!read_object(from, failure)) return false;
  to.clear();
  const std::size_t count = from.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = from.key_at(i);
    typename T::key_type key{};
    if constexpr (is_text<typename T::key_type>) {
      key.assign(name.data(), name.size());
    } else {
      if (!read_integer_key(name, key, failure)) return failure.in_member(name);
    }
    typename T::mapped_type mapped = typename T::mapped_type();
    if (!read_into(from.at(i), mapped, failure)) return failure.in_member(name);
    to.insert_or_assign(std::move(key), std::move(mapped));
  }
  return true;
}

template <class T, std::size_t... I>
bool read_variant(Reader from, T& to, Failure& failure, std::index_sequence<I...>) {
  Failure tried[sizeof...(I)];
  return (read_into(from, to.template emplace<I>(), tried[I]) || ...) || no_alternative(tried, sizeof...(I), failure);
}

template <class Duration>
constexpr TickRange tick_range() noexcept {
  using Limits = std::numeric_limits<typename Duration::rep>;
  constexpr bool wide = sizeof(typename Duration::rep) >= sizeof(std::int64_t);
  return {Duration::period::num, Duration::period::den,
          std::is_signed_v<typename Duration::rep> ? static_cast<std::int64_t>(Limits::min()) : 0,
          wide ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(Limits::max())};
}

template <class T>
bool read_time_point(Reader from, T& to, Failure& failure) {
  using Duration = typename T::duration;
  if constexpr (std::is_integral_v<typename Duration::rep>) {
    std::int64_t ticks = 0;
    if (!read_time(from, tick_range<Duration>(), ticks, failure)) return false;
    to = T(Duration(static_cast<typename Duration::rep>(ticks)));
  } else {
    using Fine = std::chrono::duration<std::int64_t, std::micro>;
    std::int64_t ticks = 0;
    if (!read_time(from, tick_range<Fine>(), ticks, failure)) return false;
    to = T(std::chrono::duration_cast<Duration>(Fine(ticks)));
  }
  return true;
}

template <class T>
bool read_duration(Reader from, T& to, Failure& failure) {
  if constexpr (std::is_integral_v<typename T::rep>) {
    std::int64_t ticks = 0;
    if (!read_seconds(from, tick_range<T>(), ticks, failure)) return false;
    to = T(static_cast<typename T::rep>(ticks));
  } else {
    double seconds = 0;
    if (!read_double(from, seconds, failure)) return false;
    to = std::chrono::duration_cast<T>(std::chrono::duration<double>(seconds));
  }
  return true;
}

template <class T>
bool read_raw(Reader from, T& to, Failure& failure) {
  // The generic lambda keeps member access to the JSON types dependent: they are complete where this is instantiated.
  return [&](const auto& value) {
    if constexpr (std::is_same_v<T, json::object>) {
      if (!read_object(from, failure)) return false;
      to = value.get_object();
    } else if constexpr (std::is_same_v<T, json::array>) {
      if (!read_array(from, failure)) return false;
      to = value.get_array();
    } else {
      to = T(value);
    }
    return true;
  }(from.value());
}

/// `Owner`: the struct that declares the member.
template <class Owner, class M>
bool read_member(Reader object, std::string_view name, M& to, Failure& failure) {
  if (const Reader found = object.find(name)) return read_into(found, to, failure) || failure.in_member(name);
  if (reflect::has_declared_default<Owner>(name)) return true;
  if constexpr (type_kind<M> == TypeKind::optional) {
    to.reset();
    return true;
  } else {
    return missing_member(name, expected_name<M>(), failure);
  }
}

template <class T>
bool read_structure(Reader from, T& to, Failure& failure) {
  if (!read_object(from, failure)) return false;
  bool fits = true;
  reflect::for_each_member(
      to, [&](std::string_view name, auto& member) { fits = fits && read_member<T>(from, name, member, failure); });
  return fits;
}

/// Reads one JSON value into `to`; on false `to` is in some valid state and `failure` says why.
template <class T>
bool read_into(Reader from, T& to, Failure& failure) {
  static_assert(readable<T>, "abxbus: this type cannot be read from JSON");
  constexpr TypeKind kind = type_kind<T>;
  if constexpr (kind == TypeKind::structure) {
    return read_structure(from, to, failure);
  } else if constexpr (kind == TypeKind::boolean) {
    return read_bool(from, to, failure);
  } else if constexpr (kind == TypeKind::integer) {
    return read_integer(from, to, failure);
  } else if constexpr (std::is_same_v<T, double>) {
    return read_double(from, to, failure);
  } else if constexpr (std::is_same_v<T, float>) {
    return read_float(from, to, failure);
  } else if constexpr (kind == TypeKind::text) {
    std::string_view text;
    if (!read_string(from, text, failure)) return false;
    to.assign(text.data(), text.size());
    return true;
  } else if constexpr (kind == TypeKind::null) {
    return read_null(from, failure);
  } else if constexpr (kind == TypeKind::raw) {
    return read_raw(from, to, failure);
  } else if constexpr (kind == TypeKind::enumeration) {
    return read_enum(from, to, failure);
  } else if constexpr (kind == TypeKind::optional) {
    return read_optional(from, to, failure);
  } else if constexpr (kind == TypeKind::sequence || kind == TypeKind::set) {
    return read_elements(from, to, failure);
  } else if constexpr (kind == TypeKind::fixed) {
    return read_fixed(from, to, failure);
  } else if constexpr (kind == TypeKind::tuple) {
    return read_tuple(from, to, failure, std::make_index_sequence<std::tuple_size<T>::value>{});
  } else if constexpr (kind == TypeKind::map) {
    return read_map(from, to, failure);
  } else if constexpr (kind == TypeKind::variant) {
    return read_variant(from, to, failure, std::make_index_sequence<VariantTraits<T>::Alternatives::size>{});
  } else if constexpr (kind == TypeKind::time) {
    return read_time_point(from, to, failure);
  } else {
    static_assert(kind == TypeKind::duration);
    return read_duration(from, to, failure);
  }
}

}  // namespace abxbus::detail::codec

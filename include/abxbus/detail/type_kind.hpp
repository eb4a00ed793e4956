#pragma once

#include <abxbus/detail/reflect.hpp>
#include <abxbus/json_fwd.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

/// What a C++ type is for JSON: the left column of the table of types (spec chapter "C++ types, JSON, schema"). Codec
/// and schema generator both go by it. Containers and smart pointers are told by their shape, so that none of their
/// headers is needed here.

namespace abxbus::detail::codec {

enum class TypeKind : unsigned char {
  none,         ///< no JSON form
  raw,          ///< JSON value, object, array or json::ref
  null,         ///< nullptr_t, monostate
  boolean,      //
  integer,      //
  floating,     //
  text,         ///< owns its characters
  text_view,    ///< written only
  enumeration,  ///< with ABXBUS_DESCRIBE_ENUM
  optional,     ///< optional, unique_ptr, shared_ptr
  sequence,     ///< vector, deque, list
  set,          //
  fixed,        ///< std::array, C array
  tuple,        ///< tuple, pair
  map,          //
  variant,      //
  structure,    ///< reflectable
  time,         ///< sys_time
  duration,
};

template <class T>
inline constexpr bool is_raw = std::is_same_v<T, json::value> || std::is_same_v<T, json::object> ||
                               std::is_same_v<T, json::array> || std::is_same_v<T, json::ref>;

template <class T>
inline constexpr bool is_character =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool> && !is_character<T>;

// -- specialisations told by name -----------------------------------------------------------------------------------

template <class T>
struct VariantTraits {
  static constexpr bool is_variant = false;
};
template <class... A>
struct VariantTraits<std::variant<A...>> {
  static constexpr bool is_variant = true;
  using Alternatives = reflect::Types<A...>;
};

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = std::is_arithmetic_v<Rep>;

template <class T>
inline constexpr bool is_time = false;
template <class Duration>
inline constexpr bool is_time<std::chrono::time_point<std::chrono::system_clock, Duration>> = is_duration<Duration>;

template <class T>
inline constexpr bool is_text = false;
template <class Traits, class Allocator>
inline constexpr bool is_text<std::basic_string<char, Traits, Allocator>> = true;

// -- shapes ---------------------------------------------------------------------------------------------------------

template <class T>
concept smart_pointer = requires(T& pointer) {
  typename T::element_type;
  pointer.get();
  pointer.reset();
  *pointer;
  static_cast<bool>(pointer);
}
&&!requires {
  typename T::value_type;
};

template <class T>
concept optional_value = requires(T& optional) {
  typename T::value_type;
  optional.has_value();
  optional.reset();
  *optional;
};

template <class T>
concept iterable = requires(const T& range) {
  typename T::value_type;
  range.begin() != range.end();
  range.size();
};

template <class T>
concept keyed = iterable<T> && requires {
  typename T::key_type;
};

template <class T>
concept unique_map = keyed<T> && requires(T& map, typename T::key_type key, typename T::mapped_type mapped) {
  map.insert_or_assign(std::move(key), std::move(mapped));
};

template <class T>
concept unique_set = keyed<T> && !requires {
  typename T::mapped_type;
}
&&requires(T& set, typename T::value_type value) {
  set.insert(std::move(value)).second;
};

template <class T>
concept growing = iterable<T> && !keyed<T> && requires(T & sequence, typename T::value_type value) {
  sequence.push_back(std::move(value));
  sequence.clear();
};

template <class T>
concept has_tuple_size = requires {
  std::tuple_size<T>::value;
};

// -- classification -------------------------------------------------------------------------------------------------

template <class T>
consteval TypeKind classify_class() {
  if constexpr (reflect::described<T>) {
    return TypeKind::structure;
  } else if constexpr (is_text<T>) {
    return TypeKind::text;
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return TypeKind::text_view;
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    return TypeKind::null;
  } else if constexpr (VariantTraits<T>::is_variant) {
    return TypeKind::variant;
  } else if constexpr (is_duration<T>) {
    return TypeKind::duration;
  } else if constexpr (is_time<T>) {
    return TypeKind::time;
  } else if constexpr (smart_pointer<T> || optional_value<T>) {
    return TypeKind::optional;
  } else if constexpr (has_tuple_size<T>) {
    return iterable<T> ? TypeKind::fixed : TypeKind::tuple;
  } else if constexpr (unique_map<T>) {
    return TypeKind::map;
  } else if constexpr (unique_set<T>) {
    return TypeKind::set;
  } else if constexpr (growing<T>) {
    return TypeKind::sequence;
  } else if constexpr (reflect::reflectable<T>) {
    return TypeKind::structure;
  } else {
    return TypeKind::none;
  }
}

template <class T>
consteval TypeKind classify() {
  if constexpr (is_raw<T>) {
    return TypeKind::raw;
  } else if constexpr (std::is_same_v<T, bool>) {
    return TypeKind::boolean;
  } else if constexpr (is_integer<T>) {
    return TypeKind::integer;
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return TypeKind::floating;
  } else if constexpr (std::is_same_v<T, std::nullptr_t>) {
    return TypeKind::null;
  } else if constexpr (std::is_same_v<T, const char*> || std::is_same_v<T, char*>) {
    return TypeKind::text_view;
  } else if constexpr (std::is_enum_v<T>) {
    return reflect::described_enum<T> ? TypeKind::enumeration : TypeKind::none;
  } else if constexpr (std::is_bounded_array_v<T>) {
    return TypeKind::fixed;
  } else if constexpr (std::is_class_v<T>) {
    return classify_class<T>();
  } else {
    return TypeKind::none;
  }
}

/// The kind of `T`, which carries no const.
template <class T>
inline constexpr TypeKind type_kind = classify<T>();

/// What a pointer, optional, container or array holds, without const.
template <class T>
struct ElementOf {
  using type = std::remove_cv_t<typename T::value_type>;
};
template <smart_pointer T>
struct ElementOf<T> {
  using type = std::remove_cv_t<typename T::element_type>;
};
template <class T, std::size_t N>
struct ElementOf<T[N]> {
  using type = std::remove_cv_t<T>;
};
template <class T>
using element_of = typename ElementOf<T>::type;

template <class T>
inline constexpr std::size_t fixed_size = std::tuple_size<T>::value;
template <class T, std::size_t N>
inline constexpr std::size_t fixed_size<T[N]> = N;

/// Elements of a tuple or pair as Types<...>.
template <class T, class Indices = std::make_index_sequence<std::tuple_size<T>::value>>
struct TupleTypes;
template <class T, std::size_t... I>
struct TupleTypes<T, std::index_sequence<I...>> {
  using type = reflect::Types<std::remove_cv_t<std::tuple_element_t<I, T>>...>;
};

}  // namespace abxbus::detail::codec

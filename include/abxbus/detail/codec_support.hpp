#pragma once

#include <abxbus/detail/type_kind.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>

/// Which C++ types can be written to JSON, and which can be read.

namespace abxbus::detail::codec {

/// `Seen`: the structs around this one, so that a recursive struct does not ask about itself for ever.
template <bool Reading, class T, class... Seen>
consteval bool is_supported();

template <bool Reading, class List, class... Seen>
inline constexpr bool are_supported = false;
template <bool Reading, class... T, class... Seen>
inline constexpr bool are_supported<Reading, reflect::Types<T...>, Seen...> =
    ((!(Reading && std::is_const_v<T>)&&is_supported<Reading, std::remove_const_t<T>, Seen...>()) && ...);

/// A pointer is filled with `reset(new ...)`, which its deleter must match.
template <class T>
consteval bool fills_with_new() {
  if constexpr (requires { typename T::deleter_type; }) {
    return reflect::type_name<typename T::deleter_type>() == "default_delete";
  } else {
    return true;
  }
}

template <class Key>
inline constexpr bool is_map_key = is_text<Key> || is_integer<Key>;

template <bool Reading, class T, class... Seen>
consteval bool is_supported() {
  constexpr TypeKind kind = type_kind<T>;
  if constexpr (kind == TypeKind::none) {
    return false;
  } else if constexpr (kind == TypeKind::text_view) {
    return !Reading;
  } else if constexpr (kind == TypeKind::structure) {
    if constexpr ((std::is_same_v<T, Seen> || ...)) {
      return true;
    } else if constexpr (Reading && !std::is_default_constructible_v<T>) {
      return false;
    } else {
      return are_supported<Reading, reflect::declared_member_types<T>, T, Seen...>;
    }
  } else if constexpr (kind == TypeKind::optional) {
    if constexpr (smart_pointer<T>) {
      return is_supported<Reading, element_of<T>, Seen...>() && (!Reading || fills_with_new<T>());
    } else {
      return are_supported<Reading, reflect::Types<typename T::value_type>, Seen...>;
    }
  } else if constexpr (kind == TypeKind::sequence || kind == TypeKind::set || kind == TypeKind::fixed) {
    return is_supported<Reading, element_of<T>, Seen...>();
  } else if constexpr (kind == TypeKind::map) {
    return is_map_key<typename T::key_type> && is_supported<Reading, typename T::mapped_type, Seen...>();
  } else if constexpr (kind == TypeKind::tuple) {
    return are_supported<Reading, typename TupleTypes<T>::type, Seen...>;
  } else if constexpr (kind == TypeKind::variant) {
    return are_supported<Reading, typename VariantTraits<T>::Alternatives, Seen...>;
  } else {
    return true;
  }
}

/// `T` has a JSON form.
template <class T>
concept writable = is_supported<false, std::remove_cv_t<T>>();

/// `T` can be made from JSON.
template <class T>
concept readable = is_supported<true, std::remove_cv_t<T>>();

/// What the schema of a `T` calls its type; for messages.
template <class T>
consteval std::string_view expected_name() {
  switch (type_kind<T>) {
    case TypeKind::boolean:
      return "boolean";
    case TypeKind::integer:
      return "integer";
    case TypeKind::floating:
    case TypeKind::duration:
      return "number";
    case TypeKind::text:
    case TypeKind::text_view:
    case TypeKind::enumeration:
      return "string";
    case TypeKind::time:
      return "timestamp";
    case TypeKind::null:
      return "null";
    case TypeKind::sequence:
    case TypeKind::set:
    case TypeKind::fixed:
    case TypeKind::tuple:
      return "array";
    case TypeKind::map:
    case TypeKind::structure:
      return "object";
    default:
      return "value";
  }
}

}  // namespace abxbus::detail::codec

#pragma once

#include <abxbus/detail/reflect_shape.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

/// Compile-time reflection: names of types, and number, names, types and lvalues of a struct's members.
///
/// Works without a macro for aggregates of up to 64 members that have no base class, no reference members, no
/// bit-fields, no anonymous unions, and whose members can be initialised by `{}`. Every other type is listed once with
/// `ABXBUS_DESCRIBE` (describe.hpp), which takes precedence. Whatever neither fits is not `reflectable`.
/// Nothing here touches an object except `for_each_member`.

namespace abxbus::detail::reflect {

/// Carries a type, and lets the functions that the ABXBUS_DESCRIBE macros define be found by argument-dependent lookup.
template <class T>
struct Tag {};

template <class... T>
struct Types {
  static constexpr std::size_t size = sizeof...(T);
};

/// A fixed list of names; `size()`, `[]` and iteration, also for N = 0.
template <std::size_t N>
struct Names {
  std::string_view items[N == 0 ? 1 : N];

  static constexpr std::size_t size() noexcept { return N; }
  constexpr std::string_view operator[](std::size_t i) const noexcept { return items[i]; }
  constexpr const std::string_view* begin() const noexcept { return items; }
  constexpr const std::string_view* end() const noexcept { return items + N; }
  constexpr bool contains(std::string_view name) const noexcept {
    for (const std::string_view item : *this) {
      if (item == name) return true;
    }
    return false;
  }
};

/// The enumerators that belong to a list of names.
template <class E, std::size_t N>
struct Values {
  E items[N == 0 ? 1 : N];

  static constexpr std::size_t size() noexcept { return N; }
  constexpr E operator[](std::size_t i) const noexcept { return items[i]; }
};

template <class... Number>
constexpr std::size_t count_of(Number...) noexcept {
  return sizeof...(Number);
}

// -- names out of the compiler's own spelling -----------------------------------------------------------------------

constexpr bool is_name_char(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The last identifier of `text`, whatever punctuation follows it.
constexpr std::string_view last_name(std::string_view text) noexcept {
  std::size_t end = text.size();
  while (end > 0 && !is_name_char(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_name_char(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

/// Unqualified name at the end of a spelled type: `[... T = a::f()::Box<b::C>]` gives `Box`.
constexpr std::string_view last_type_name(std::string_view text) noexcept {
  std::size_t end = text.rfind(']');
  while (end > 0 && text[end - 1] == ' ') --end;
  if (end > 0 && text[end - 1] == '>') {
    int depth = 0;
    do {
      --end;
      if (text[end] == '>') ++depth;
      if (text[end] == '<') --depth;
    } while (depth > 0 && end > 0);
  }
  return last_name(text.substr(0, end));
}

template <class T>
consteval const char* spelled_type() {
  return __PRETTY_FUNCTION__;
}
// The pointer is wrapped because Clang before 18 takes the address of a member only inside a class-type argument.
template <auto Wrapped>
consteval const char* spelled_value() {
  return __PRETTY_FUNCTION__;
}

/// Unqualified name of a type, without template arguments (D-TEV-1). Valid for ever.
template <class T>
constexpr std::string_view type_name() noexcept {
  constexpr std::string_view name = last_type_name(spelled_type<std::remove_cv_t<T>>());
  return name;
}

// -- types listed by macro ------------------------------------------------------------------------------------------

template <class T>
concept described = requires {
  abxbus_describe_names(Tag<T>{});
};

/// An enum with names given by ABXBUS_DESCRIBE_ENUM.
template <class T>
concept described_enum = std::is_enum_v<T> && requires {
  abxbus_describe_enum_names(Tag<T>{});
};

// -- aggregates -----------------------------------------------------------------------------------------------------

/// Converts to the bases of `T` only.
template <class T>
struct AnyBase {
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>) operator U() const noexcept;
};
/// The next two stand for a member that `{}` cannot initialise.
template <class T>
struct AnyValue {
  template <class U>
  requires(!std::is_same_v<U, T>) operator U() const noexcept;
};
struct AnyReference {
  template <class U>
  operator U&() const noexcept;
};

/// Number of members, `max_members + 1` for more.
template <class T, std::size_t N = 0>
consteval std::size_t count_members() {
  if constexpr (N > max_members) {
    return N;
  } else if constexpr (Shape<N + 1>::template braces<T>) {
    return count_members<T, N + 1>();
  } else {
    return N;
  }
}

/// Whether the members of `T` can be found without a macro.
template <class T>
consteval bool is_transparent() {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T>) {
    return false;
  } else if constexpr (!Shape<0>::braces<T> || Shape<0>::followed_by<T, AnyBase<T>>) {
    return false;
  } else {
    constexpr std::size_t count = count_members<T>();
    if constexpr (count > max_members) {
      return false;
    } else {
      return !Shape<count>::template followed_by<T, AnyValue<T>> &&
             !Shape<count>::template followed_by<T, AnyReference>;
    }
  }
}

template <class T>
inline constexpr bool transparent = is_transparent<T>();

/// Whether the members of `T` are known; every other name below needs it.
template <class T>
inline constexpr bool reflectable = [] {
  if constexpr (!std::is_class_v<T>) {
    return false;
  } else if constexpr (described<T>) {
    return true;
  } else {
    return transparent<T>;
  }
}();

/// A place for a `T` that is never made; only addresses of its members are formed, during compilation. It is defined,
/// unlike an `extern` variable, so that types without linkage (local ones) work too.
template <class T>
union Phantom {
  char none;
  T value;

  constexpr Phantom() noexcept : none() {}
  constexpr ~Phantom() {}
};
#if defined(__clang__)
template <class T>
[[clang::no_destroy]] inline constinit Phantom<T> phantom;
#else
template <class T>
inline constexpr Phantom<T> phantom;
#endif

template <class Pointer>
struct Wrapped {
  Pointer pointer;
};

template <std::size_t>
struct Skip {
  constexpr Skip(const volatile void*) noexcept {}
};
/// Picks the pointer after as many others as there are indices.
template <class Indices>
struct Pick;
template <std::size_t... I>
struct Pick<std::index_sequence<I...>> {
  template <class M, class... Rest>
  static constexpr M* from(Skip<I>..., M* picked, Rest*...) noexcept {
    return picked;
  }
};

template <class T, std::size_t N, std::size_t I>
consteval auto member_address() {
  return Shape<N>::apply(phantom<T>.value, [](auto&... member) {
    auto* picked = Pick<std::make_index_sequence<I>>::from(&member...);
    return Wrapped<decltype(picked)>{picked};
  });
}

template <class T, std::size_t... I>
consteval Names<sizeof...(I)> find_names(std::index_sequence<I...>) {
  return {{last_name(spelled_value<member_address<T, sizeof...(I), I>()>())...}};
}

template <class T>
consteval auto names_of() {
  if constexpr (described<T>) {
    return abxbus_describe_names(Tag<T>{});
  } else {
    return find_names<T>(std::make_index_sequence<count_members<T>()>{});
  }
}

// -- what users of this header need ---------------------------------------------------------------------------------

/// Names of the members in declaration order, a `Names<N>`.
template <class T>
inline constexpr auto member_names = names_of<T>();

template <class T>
inline constexpr std::size_t member_count = decltype(names_of<T>())::size();

/// Calls `f(member&...)` once with all members, const when the object is.
template <class T, class F>
constexpr decltype(auto) apply_members(T& object, F&& f) {
  using Struct = std::remove_const_t<T>;
  if constexpr (described<Struct>) {
    return abxbus_describe_apply(Tag<Struct>{}, object, f);
  } else {
    return Shape<member_count<Struct>>::apply(object, f);
  }
}

/// Calls `f(std::string_view name, member&)` for each member in declaration order.
template <class T, class F>
constexpr void for_each_member(T& object, F&& f) {
  apply_members(object, [&f](auto&... member) {
    std::size_t index = 0;
    (static_cast<void>(f(member_names<std::remove_const_t<T>>[index++], member)), ...);
  });
}

struct TypesOf {
  template <class... M>
  constexpr Types<M...> operator()(M&...) const noexcept {
    return {};
  }
};
struct ValueTypesOf {
  template <class... M>
  constexpr Types<std::remove_const_t<M>...> operator()(M&...) const noexcept {
    return {};
  }
};

/// `Types<M...>` of the members, without const.
template <class T>
using member_types = decltype(apply_members(std::declval<T&>(), std::declval<ValueTypesOf&>()));
/// The same as declared.
template <class T>
using declared_member_types = decltype(apply_members(std::declval<T&>(), std::declval<TypesOf&>()));

/// Whether `T` names the member in `json_defaults` or ABXBUS_DESCRIBE_DEFAULTS (D-TYP-3).
template <class T>
constexpr bool has_declared_default([[maybe_unused]] std::string_view name) noexcept {
  if constexpr (requires { abxbus_describe_defaults(Tag<T>{}); }) {
    return abxbus_describe_defaults(Tag<T>{}).contains(name);
  } else if constexpr (requires { T::json_defaults; }) {
    for (const std::string_view item : T::json_defaults) {
      if (item == name) return true;
    }
  }
  return false;
}

}  // namespace abxbus::detail::reflect

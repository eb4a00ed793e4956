#pragma once

#include <abxbus/detail/reflect.hpp>

/// Macros for types whose members or enumerators the library cannot find by itself. All stand at namespace scope, in
/// the namespace of the type, after its definition; all take up to 64 names.
///
/// `ABXBUS_DESCRIBE(Type, members...)`: lists the data members, in the order of the JSON object. For types that are no
/// plain aggregates: constructors, base classes (list their members too, D-GEN-5), more than 64 members. The members
/// named must be accessible. A semicolon may follow, for this and the other macros.
///
/// `ABXBUS_DESCRIBE_DEFAULTS(Type, members...)`: these members may be missing in JSON; they then keep the value that a
/// default-constructed object gives them (D-TYP-3). The same as a `static constexpr` member `json_defaults`.
///
/// `ABXBUS_DESCRIBE_ENUM(Type, names...)`: gives an enumeration a JSON form, the enumerator's name as a string.

#define ABXBUS_DESCRIBE(Type, ...)                                                                                   \
  [[maybe_unused]] constexpr auto abxbus_describe_names(::abxbus::detail::reflect::Tag<Type>) noexcept {             \
    return ::abxbus::detail::reflect::Names<ABXBUS_DETAIL_COUNT(__VA_ARGS__)>{                                       \
        {__VA_OPT__(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_NAME, , __VA_ARGS__))}};                                        \
  }                                                                                                                  \
  template <class AbxbusSelf, class AbxbusVisitor>                                                                   \
  constexpr decltype(auto) abxbus_describe_apply(::abxbus::detail::reflect::Tag<Type>,                               \
                                                 [[maybe_unused]] AbxbusSelf& abxbus_self, AbxbusVisitor& visitor) { \
    return visitor(__VA_OPT__(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_MEMBER, , __VA_ARGS__)));                             \
  }

#define ABXBUS_DESCRIBE_DEFAULTS(Type, ...)                                                                        \
  [[maybe_unused]] constexpr auto abxbus_describe_defaults(::abxbus::detail::reflect::Tag<Type>) noexcept {        \
    __VA_OPT__(static_assert(ABXBUS_DETAIL_ADD(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_EXISTS, Type, __VA_ARGS__)) > 0);) \
    return ::abxbus::detail::reflect::Names<ABXBUS_DETAIL_COUNT(__VA_ARGS__)>{                                     \
        {__VA_OPT__(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_NAME, , __VA_ARGS__))}};                                      \
  }

#define ABXBUS_DESCRIBE_ENUM(Type, ...)                                                                        \
  [[maybe_unused]] constexpr auto abxbus_describe_enum_names(::abxbus::detail::reflect::Tag<Type>) noexcept {  \
    return ::abxbus::detail::reflect::Names<ABXBUS_DETAIL_COUNT(__VA_ARGS__)>{                                 \
        {__VA_OPT__(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_NAME, , __VA_ARGS__))}};                                  \
  }                                                                                                            \
  [[maybe_unused]] constexpr auto abxbus_describe_enum_values(::abxbus::detail::reflect::Tag<Type>) noexcept { \
    return ::abxbus::detail::reflect::Values<Type, ABXBUS_DETAIL_COUNT(__VA_ARGS__)>{                          \
        {__VA_OPT__(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_ENUMERATOR, Type, __VA_ARGS__))}};                        \
  }

#define ABXBUS_DETAIL_NAME(context, name) #name
#define ABXBUS_DETAIL_MEMBER(context, name) abxbus_self.name
#define ABXBUS_DETAIL_ENUMERATOR(Type, name) Type::name
#define ABXBUS_DETAIL_EXISTS(Type, name) sizeof(Type::name)

// Applies `what(context, name)` to each of up to 64 names, with commas between the results: each pass of
// ABXBUS_DETAIL_SCAN lets the preprocessor resolve one more link of the chain.
#define ABXBUS_DETAIL_EACH(what, context, ...) \
  __VA_OPT__(ABXBUS_DETAIL_SCAN(ABXBUS_DETAIL_STEP(what, context, __VA_ARGS__)))
#define ABXBUS_DETAIL_STEP(what, context, name, ...) \
  what(context, name) __VA_OPT__(, ABXBUS_DETAIL_AGAIN ABXBUS_DETAIL_PARENS(what, context, __VA_ARGS__))
#define ABXBUS_DETAIL_AGAIN() ABXBUS_DETAIL_STEP
#define ABXBUS_DETAIL_PARENS ()
#define ABXBUS_DETAIL_SCAN(...) \
  ABXBUS_DETAIL_SCAN_3(ABXBUS_DETAIL_SCAN_3(ABXBUS_DETAIL_SCAN_3(ABXBUS_DETAIL_SCAN_3(__VA_ARGS__))))
#define ABXBUS_DETAIL_SCAN_3(...) \
  ABXBUS_DETAIL_SCAN_2(ABXBUS_DETAIL_SCAN_2(ABXBUS_DETAIL_SCAN_2(ABXBUS_DETAIL_SCAN_2(__VA_ARGS__))))
#define ABXBUS_DETAIL_SCAN_2(...) \
  ABXBUS_DETAIL_SCAN_1(ABXBUS_DETAIL_SCAN_1(ABXBUS_DETAIL_SCAN_1(ABXBUS_DETAIL_SCAN_1(__VA_ARGS__))))
#define ABXBUS_DETAIL_SCAN_1(...) __VA_ARGS__
#define ABXBUS_DETAIL_COUNT(...) \
  (0 __VA_OPT__(+ABXBUS_DETAIL_ADD(ABXBUS_DETAIL_EACH(ABXBUS_DETAIL_ONE, , __VA_ARGS__))))
#define ABXBUS_DETAIL_ONE(context, name) 1
#define ABXBUS_DETAIL_ADD(...) (::abxbus::detail::reflect::count_of(__VA_ARGS__))

#pragma once

#include <abxbus/detail/codec.hpp>
#include <abxbus/json_fwd.hpp>

#include <boost/json.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

/// JSON values: `abxbus::json::value` and `object` are Boost.JSON's; what Boost.JSON does otherwise than the wire
/// format wants (number spelling, depth limit, equality of numbers) stands here. All functions may be called from any
/// thread.

namespace abxbus::json {

/// How deep arrays and objects may be nested in parsed text, unless the caller says otherwise.
inline constexpr std::size_t default_max_depth = 64;

/// Reads one JSON document. Integers stay integers, doubles are exact, of equal keys the last one wins. ValidationError
/// for malformed text, invalid UTF-8, lone surrogates, numbers beyond a double's range, and too deep nesting
/// (D-JSON-1, D-JSON-4).
value parse(std::string_view text, std::size_t max_depth = default_max_depth);

/// Compact text, UTF-8 (D-JSON-6); with `indent` > 0 one member or element a line, indented by so many spaces a level.
/// ValidationError for a number that is not finite and for text that is not UTF-8 (D-JSON-5).
std::string dump(const value& source, unsigned indent = 0);
/// The same for an object or array that is in no value. A template, so that nothing else converts to one.
template <class Source>
requires(std::same_as<Source, object> || std::same_as<Source, array>) std::string
    dump(const Source& source, unsigned indent = 0);

/// Equality of D-JSON-3: key order does not matter, numbers are compared by exact value, whatever their kind.
bool deep_equal(const value& left, const value& right) noexcept;

/// A C++ value as JSON, by the table of types (D-TYP). ValidationError for NaN, infinity and invalid UTF-8.
template <class T>
value encode(const T& source) {
  detail::codec::Writer writer;
  detail::codec::write(writer, source);
  return writer.take();
}

/// A string literal.
inline value encode(const char* source) {
  return encode<const char*>(source);
}

/// JSON as a C++ value. ValidationError names path and expected type (D-TYP-1).
template <class T>
T decode(const value& source) {
  return detail::codec::decode<T>(source);
}

}  // namespace abxbus::json

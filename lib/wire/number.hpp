#pragma once

#include <boost/json/fwd.hpp>

#include <compare>
#include <cstdint>
#include <string>

namespace abxbus::detail {

/// Exact order of two JSON numbers of any kind (D-VAL-6); unordered when one is no number or NaN.
std::partial_ordering compare_numbers(const boost::json::value& left, const boost::json::value& right) noexcept;

/// A finite double in its shortest form that reads back to the same value, always recognisable as a double: with `.0`
/// when integral (D-JSON-6).
void append_double(std::string& text, double value);
void append_integer(std::string& text, std::int64_t value);
void append_integer(std::string& text, std::uint64_t value);

}  // namespace abxbus::detail

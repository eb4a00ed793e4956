#include "wire/number.hpp"

#include <boost/json/value.hpp>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

namespace abxbus::detail {

namespace {

constexpr double two_to_63 = 9223372036854775808.0;
constexpr double two_to_64 = 18446744073709551616.0;

std::partial_ordering compare_signed(std::int64_t left, double right) noexcept {
  if (std::isnan(right)) return std::partial_ordering::unordered;
  if (right >= two_to_63) return std::partial_ordering::less;
  if (right < -two_to_63) return std::partial_ordering::greater;
  const double whole = std::trunc(right);
  const std::partial_ordering order = left <=> static_cast<std::int64_t>(whole);
  return order != 0 ? order : whole <=> right;
}

std::partial_ordering compare_unsigned(std::uint64_t left, double right) noexcept {
  if (std::isnan(right)) return std::partial_ordering::unordered;
  if (right >= two_to_64) return std::partial_ordering::less;
  if (right < 0) return std::partial_ordering::greater;
  const double whole = std::trunc(right);
  const std::partial_ordering order = left <=> static_cast<std::uint64_t>(whole);
  return order != 0 ? order : whole <=> right;
}

std::partial_ordering compare_integer(const boost::json::value& left, double right) noexcept {
  return left.is_int64() ? compare_signed(left.get_int64(), right) : compare_unsigned(left.get_uint64(), right);
}

std::partial_ordering reversed(std::partial_ordering order) noexcept {
  return 0 <=> order;
}

}  // namespace

std::partial_ordering compare_numbers(const boost::json::value& left, const boost::json::value& right) noexcept {
  if (!left.is_number() || !right.is_number()) return std::partial_ordering::unordered;
  if (left.is_double() && right.is_double()) return left.get_double() <=> right.get_double();
  if (right.is_double()) return compare_integer(left, right.get_double());
  if (left.is_double()) return reversed(compare_integer(right, left.get_double()));
  if (left.is_int64() && right.is_int64()) return left.get_int64() <=> right.get_int64();
  if (left.is_uint64() && right.is_uint64()) return left.get_uint64() <=> right.get_uint64();
  const auto compare_mixed = [](std::int64_t low, std::uint64_t high) -> std::partial_ordering {
    if (low < 0) return std::partial_ordering::less;
    return static_cast<std::uint64_t>(low) <=> high;
  };
  if (left.is_int64()) return compare_mixed(left.get_int64(), right.get_uint64());
  return reversed(compare_mixed(right.get_int64(), left.get_uint64()));
}

void append_double(std::string& text, double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string_view shortest(buffer, static_cast<std::size_t>(result.ptr - buffer));
  if (shortest.find('.') != std::string_view::npos || std::trunc(value) != value) {
    text += shortest;
    return;
  }
  const std::size_t exponent = shortest.find('e');
  text += shortest.substr(0, exponent);
  text += ".0";
  if (exponent != std::string_view::npos) text += shortest.substr(exponent);
}

namespace {

template <class Integer>
void append(std::string& text, Integer value) {
  char buffer[24];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  text.append(buffer, static_cast<std::size_t>(result.ptr - buffer));
}

}  // namespace

void append_integer(std::string& text, std::int64_t value) {
  append(text, value);
}
void append_integer(std::string& text, std::uint64_t value) {
  append(text, value);
}

}  // namespace abxbus::detail

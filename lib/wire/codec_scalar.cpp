#include <abxbus/detail/codec_io.hpp>
#include <abxbus/error.hpp>
#include <abxbus/timestamp.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace abxbus::detail::codec {

namespace {

__extension__ using Wide = __int128;

/// The number as an integer of any 64-bit kind, when it has no fraction.
std::optional<Wide> integral(Reader from) noexcept {
  switch (from.kind()) {
    case JsonKind::int64:
      return from.as_int64();
    case JsonKind::uint64:
      return from.as_uint64();
    case JsonKind::number:
      break;
    default:
      return std::nullopt;
  }
  const double number = from.as_double();
  constexpr double two_to_64 = 18446744073709551616.0;
  if (!(std::fabs(number) <= two_to_64) || std::trunc(number) != number) return std::nullopt;
  return static_cast<Wide>(number);
}

template <class Integer>
bool out_of_range(Integer low, Integer high, Failure& failure) {
  return failure.expected("integer from " + std::to_string(low) + " to " + std::to_string(high));
}

/// Any JSON number, rounded to a double.
std::optional<double> number_in(Reader from) noexcept {
  switch (from.kind()) {
    case JsonKind::int64:
      return static_cast<double>(from.as_int64());
    case JsonKind::uint64:
      return static_cast<double>(from.as_uint64());
    case JsonKind::number:
      break;
    default:
      return std::nullopt;
  }
  const double number = from.as_double();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

template <class Integer>
bool read_decimal(std::string_view text, Integer low, Integer high, Integer& to, Failure& failure) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, to);
  if (error == std::errc::result_out_of_range) return out_of_range(low, high, failure);
  if (error != std::errc() || stop != end) return failure.expected("decimal integer as member name");
  return (to >= low && to <= high) || out_of_range(low, high, failure);
}

}  // namespace

bool read_null(Reader from, Failure& failure) {
  return from.is_null() || failure.expected("null");
}

bool read_bool(Reader from, bool& to, Failure& failure) {
  if (from.kind() != JsonKind::boolean) return failure.expected("boolean");
  to = from.as_bool();
  return true;
}

bool read_signed(Reader from, std::int64_t low, std::int64_t high, std::int64_t& to, Failure& failure) {
  const std::optional<Wide> number = integral(from);
  if (!number) return failure.expected("integer");
  if (*number < low || *number > high) return out_of_range(low, high, failure);
  to = static_cast<std::int64_t>(*number);
  return true;
}

bool read_unsigned(Reader from, std::uint64_t high, std::uint64_t& to, Failure& failure) {
  const std::optional<Wide> number = integral(from);
  if (!number) return failure.expected("integer");
  if (*number < 0 || *number > high) return out_of_range(std::uint64_t{0}, high, failure);
  to = static_cast<std::uint64_t>(*number);
  return true;
}

bool read_double(Reader from, double& to, Failure& failure) {
  const std::optional<double> number = number_in(from);
  if (!number) return failure.expected("number");
  to = *number;
  return true;
}

bool read_float(Reader from, float& to, Failure& failure) {
  double number = 0;
  if (!read_double(from, number, failure)) return false;
  if (std::fabs(number) > double{std::numeric_limits<float>::max()})
    return failure.expected("number that fits a float");
  to = static_cast<float>(number);
  return true;
}

bool read_string(Reader from, std::string_view& to, Failure& failure) {
  if (from.kind() != JsonKind::string) return failure.expected("string");
  to = from.as_string();
  return true;
}

bool read_time(Reader from, const TickRange& range, std::int64_t& to, Failure& failure) {
  std::string_view text;
  if (!read_string(from, text, failure)) return failure.expected("timestamp");
  Wide nanoseconds = 0;
  try {
    nanoseconds = Timestamp::parse(text).unix_ns();
  } catch (const ValidationError&) {
    return failure.expected("timestamp");
  }
  constexpr Wide ns_a_second = 1'000'000'000;
  // Rounded down; a timestamp is never negative. Parts, because ns times den might not fit.
  const Wide seconds = nanoseconds / ns_a_second;
  const Wide rest = nanoseconds % ns_a_second;
  const Wide ticks = (seconds * range.den + rest * range.den / ns_a_second) / range.num;
  if (ticks < range.low || ticks > range.high) return failure.expected("timestamp that fits the clock's type");
  to = static_cast<std::int64_t>(ticks);
  return true;
}

bool read_seconds(Reader from, const TickRange& range, std::int64_t& to, Failure& failure) {
  double seconds = 0;
  if (!read_double(from, seconds, failure)) return false;
  const long double ticks = std::round(static_cast<long double>(seconds) * static_cast<long double>(range.den) /
                                       static_cast<long double>(range.num));
  if (ticks < static_cast<long double>(range.low) || ticks > static_cast<long double>(range.high) ||
      ticks >= 9223372036854775808.0L) {
    return failure.expected("number of seconds that fits the duration's type");
  }
  to = static_cast<std::int64_t>(ticks);
  return true;
}

bool read_name(Reader from, const std::string_view* names, std::size_t count, std::size_t& to, Failure& failure) {
  std::string_view text;
  if (!read_string(from, text, failure)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == text) {
      to = i;
      return true;
    }
  }
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += ", ";
    all += names[i];
  }
  return failure.expected("one of " + all);
}

bool read_array(Reader from, Failure& failure) {
  return from.kind() == JsonKind::array || failure.expected("array");
}

bool read_array_of(Reader from, std::size_t count, Failure& failure) {
  if (!read_array(from, failure)) return false;
  return from.size() == count || failure.expected("array of length " + std::to_string(count));
}

bool read_object(Reader from, Failure& failure) {
  return from.kind() == JsonKind::object || failure.expected("object");
}

bool read_key(std::string_view text, std::int64_t low, std::int64_t high, std::int64_t& to, Failure& failure) {
  return read_decimal(text, low, high, to, failure);
}

bool read_key(std::string_view text, std::uint64_t high, std::uint64_t& to, Failure& failure) {
  return read_decimal(text, std::uint64_t{0}, high, to, failure);
}

}  // namespace abxbus::detail::codec

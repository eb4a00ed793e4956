#include "event/clock.hpp"
#include "event/text_forms.hpp"

#include <abxbus/error.hpp>
#include <abxbus/timestamp.hpp>

#include <limits>

namespace abxbus {
namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;

constexpr std::int64_t first_second_of_year(int year) noexcept {
  const std::chrono::sys_days day{std::chrono::year{year} / 1 / 1};
  return std::chrono::sys_seconds(day).time_since_epoch().count();
}
constexpr std::int64_t first_second = first_second_of_year(1991);
constexpr std::int64_t end_second = first_second_of_year(2500);

void write_digits(char* out, int count, std::uint64_t value) noexcept {
  while (count > 0) {
    out[--count] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

/// Reads a text from left to right; a failed step makes every later one fail.
class Cursor {
 public:
  explicit Cursor(std::string_view text) noexcept : rest_(text) {}

  bool failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return rest_.empty(); }

  /// The next character is this one, and is passed.
  bool skip(char c) noexcept {
    if (failed_ || rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) noexcept {
    if (!skip(c)) failed_ = true;
  }
  bool digit(int& value) noexcept {
    if (failed_ || rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return false;
    value = rest_.front() - '0';
    rest_.remove_prefix(1);
    return true;
  }
  /// Exactly that many digits.
  int number(int digits) noexcept {
    int value = 0;
    for (int next = 0; digits > 0; --digits) {
      if (!digit(next)) {
        failed_ = true;
        return 0;
      }
      value = value * 10 + next;
    }
    return value;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

/// What follows the dot, as nanoseconds; nothing for no digit at all. More than nine fail at what comes next.
std::optional<std::int64_t> fraction(Cursor& in) noexcept {
  std::int64_t ns = 0;
  std::int64_t unit = ns_per_second / 10;
  int next = 0;
  if (!in.digit(next)) return std::nullopt;
  do {
    ns += next * unit;
    unit /= 10;
  } while (unit > 0 && in.digit(next));
  return ns;
}

/// Seconds to subtract for UTC; nothing when it is no zone.
std::optional<std::int64_t> zone(Cursor& in) noexcept {
  if (in.skip('Z')) return 0;
  const bool east = in.skip('+');
  if (!east) in.expect('-');
  const int hours = in.number(2);
  in.expect(':');
  const int minutes = in.number(2);
  if (in.failed() || hours > 23 || minutes > 59) return std::nullopt;
  const std::int64_t seconds = hours * 3600 + minutes * 60;
  return east ? seconds : -seconds;
}

}  // namespace

namespace detail {

void write_text(Timestamp time, char* out) noexcept {
  const std::uint64_t ns = time.unix_ns();
  const std::chrono::sys_seconds seconds{
      std::chrono::seconds{static_cast<std::int64_t>(ns / static_cast<std::uint64_t>(ns_per_second))}};
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date{day};
  const auto in_day = static_cast<std::uint64_t>((seconds - day).count());
  write_digits(out, 4, static_cast<std::uint64_t>(static_cast<int>(date.year())));
  out[4] = '-';
  write_digits(out + 5, 2, static_cast<unsigned>(date.month()));
  out[7] = '-';
  write_digits(out + 8, 2, static_cast<unsigned>(date.day()));
  out[10] = 'T';
  write_digits(out + 11, 2, in_day / 3600);
  out[13] = ':';
  write_digits(out + 14, 2, in_day / 60 % 60);
  out[16] = ':';
  write_digits(out + 17, 2, in_day % 60);
  out[19] = '.';
  write_digits(out + 20, 9, ns % static_cast<std::uint64_t>(ns_per_second));
  out[29] = 'Z';
}

std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept {
  Cursor in(text);
  const int year = in.number(4);
  in.expect('-');
  const int month = in.number(2);
  in.expect('-');
  const int day = in.number(2);
  in.expect('T');
  const int hour = in.number(2);
  in.expect(':');
  const int minute = in.number(2);
  in.expect(':');
  const int second = in.number(2);
  if (in.failed()) return std::nullopt;

  std::int64_t ns = 0;
  if (in.skip('.')) {
    const auto digits = fraction(in);
    if (!digits) return std::nullopt;
    ns = *digits;
  }
  const auto offset = zone(in);
  if (!offset || !in.at_end()) return std::nullopt;

  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::int64_t midnight = std::chrono::sys_seconds(std::chrono::sys_days(date)).time_since_epoch().count();
  const std::int64_t seconds = midnight + hour * 3600 + minute * 60 + second - *offset;
  if (seconds < first_second || seconds >= end_second) return std::nullopt;
  return Timestamp::from_unix_ns(static_cast<std::uint64_t>(seconds) * static_cast<std::uint64_t>(ns_per_second) +
                                 static_cast<std::uint64_t>(ns));
}

}  // namespace detail

Timestamp Timestamp::now() noexcept {
  return detail::to_timestamp(detail::now_ns());
}

Timestamp Timestamp::parse(std::string_view text) {
  static_assert(Timestamp::first_second == abxbus::first_second && Timestamp::end_second == abxbus::end_second);
  if (const auto time = detail::parse_timestamp(text)) return *time;
  throw ValidationError("invalid timestamp, expected YYYY-MM-DDTHH:MM:SS[.fffffffff](Z|+HH:MM|-HH:MM), got: " +
                        std::string(text));
}

std::string Timestamp::str() const {
  std::string text(text_size, '\0');
  detail::write_text(*this, text.data());
  return text;
}

std::chrono::sys_time<std::chrono::nanoseconds> Timestamp::time() const {
  if (ns_ > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw ValidationError("timestamp does not fit into 64 bits of nanoseconds: " + str());
  return std::chrono::sys_time<std::chrono::nanoseconds>{std::chrono::nanoseconds{static_cast<std::int64_t>(ns_)}};
}

void Timestamp::out_of_range() {
  throw ValidationError("timestamp must be in the years 1991 to 2499");
}

int Timestamp::compare_text(std::string_view text) const noexcept {
  char own[text_size];
  detail::write_text(*this, own);
  return std::string_view(own, text_size).compare(text);
}

}  // namespace abxbus

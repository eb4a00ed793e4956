#pragma once

#include <chrono>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>

namespace abxbus {

/// A point in time, in nanoseconds since the Unix epoch, UTC, without leap seconds.
///
/// What is given (text or `std::chrono` time) must lie in the years 1991 to 2499 (D-TIM-6).
///
/// Threads: a plain value; every static function may be called from any thread.
class Timestamp {
 public:
  /// Characters of the text form.
  static constexpr std::size_t text_size = 30;

  /// The current time. Strictly increasing on one thread; never decreases along happens-before within the library's
  /// own hand-overs (D-TIM-7). Follows the system clock, slowly where that one was set.
  static Timestamp now() noexcept;

  /// Reads `YYYY-MM-DDTHH:MM:SS[.fffffffff](Z|±HH:MM)` and converts it to UTC (D-TIM-2 to D-TIM-6). ValidationError
  /// for anything else.
  static Timestamp parse(std::string_view text);

  /// From any `std::chrono` system time; what is finer than a nanosecond is cut off (D-TIM-8). ValidationError outside
  /// the years 1991 to 2499.
  template <class D>
  Timestamp(std::chrono::sys_time<D> time) : ns_(from_time(time)) {}

  /// The form of 30 characters, `YYYY-MM-DDTHH:MM:SS.fffffffffZ` (D-TIM-1). One allocation.
  std::string str() const;

  /// As `std::chrono` time. Its 64 bits end in April 2262; ValidationError for a later time.
  std::chrono::sys_time<std::chrono::nanoseconds> time() const;

  /// Nanoseconds since the Unix epoch. Unsigned, because the year 2499 does not fit otherwise.
  constexpr std::uint64_t unix_ns() const noexcept { return ns_; }
  /// The inverse of `unix_ns`, unchecked.
  static constexpr Timestamp from_unix_ns(std::uint64_t ns) noexcept { return Timestamp(Raw{ns}); }

  friend constexpr bool operator==(const Timestamp&, const Timestamp&) noexcept = default;
  friend constexpr std::strong_ordering operator<=>(const Timestamp&, const Timestamp&) noexcept = default;

  /// Compares the form of 30 characters, character by character (D-TIM-1: text order is time order).
  friend bool operator==(const Timestamp& left, std::string_view right) noexcept {
    return left.compare_text(right) == 0;
  }
  friend std::strong_ordering operator<=>(const Timestamp& left, std::string_view right) noexcept {
    return left.compare_text(right) <=> 0;
  }

 private:
  struct Raw {
    std::uint64_t ns;
  };
  constexpr explicit Timestamp(Raw raw) noexcept : ns_(raw.ns) {}

  /// The first second of 1991 and the one after the last of 2499.
  static constexpr std::int64_t first_second = 662'688'000;
  static constexpr std::int64_t end_second = 16'725'225'600;

  template <class D>
  static std::uint64_t from_time(std::chrono::sys_time<D> time) {
    using std::chrono::floor;
    if constexpr (std::chrono::treat_as_floating_point_v<typename D::rep>) {
      // Before the conversion to integers, which is undefined for what does not fit; true for NaN as well.
      const double seconds = std::chrono::duration<double>(time.time_since_epoch()).count();
      if (!(seconds >= static_cast<double>(first_second) && seconds < static_cast<double>(end_second))) out_of_range();
    }
    // Whole seconds first: the nanoseconds of 2499 do not fit into 64 signed bits.
    const auto whole = floor<std::chrono::seconds>(time);
    const auto seconds = whole.time_since_epoch().count();
    if (seconds < first_second || seconds >= end_second) out_of_range();
    const auto rest = floor<std::chrono::nanoseconds>(time - whole).count();
    return static_cast<std::uint64_t>(seconds) * 1'000'000'000U + static_cast<std::uint64_t>(rest);
  }

  [[noreturn]] static void out_of_range();
  int compare_text(std::string_view text) const noexcept;

  std::uint64_t ns_;
};

}  // namespace abxbus

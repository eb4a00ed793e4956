#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace abxbus::perf {

/// The parts one after another.
std::string joined(std::initializer_list<std::string_view> parts);
/// Width on a terminal of text in UTF-8 (no wide letters).
std::size_t display_width(std::string_view text) noexcept;
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);
/// A thin line.
std::string rule(std::size_t width);

/// 1234567 -> "1 234 567".
std::string grouped(std::int64_t number);
/// Three digits that count: 0.000164, 1.23, 97.1, 1 540.
std::string significant(double number);
/// Nanoseconds in the unit that reads best: "164 ns", "8.21 ms", "1.50 s".
std::string duration(double ns);
/// A rate: "6.10 M/s".
std::string rate(double per_second);

}  // namespace abxbus::perf

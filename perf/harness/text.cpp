#include "harness/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace abxbus::perf {

namespace {

std::string fixed(double number, int decimals) {
  std::array<char, 64> digits{};
  std::snprintf(digits.data(), digits.size(), "%.*f", decimals, number);
  return digits.data();
}

}  // namespace

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string whole;
  for (const std::string_view part : parts) whole += part;
  return whole;
}

std::size_t display_width(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

std::string left(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(width > used ? width - used : 0, ' ');
}

std::string right(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(width > used ? width - used : 0, ' ') + std::string(text);
}

std::string rule(std::size_t width) {
  std::string line;
  for (std::size_t i = 0; i < width; ++i) line += "─";
  return line;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ' ');
  return digits;
}

std::string significant(double number) {
  const double size = std::abs(number);
  if (size == 0) return "0";
  if (size >= 99.95) return grouped(std::llround(number));
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(size)));
  return fixed(number, std::clamp(decimals, 0, 9));
}

std::string duration(double ns) {
  if (ns < 1e3) return significant(ns) + " ns";
  if (ns < 1e6) return significant(ns / 1e3) + " us";
  if (ns < 1e9) return significant(ns / 1e6) + " ms";
  return significant(ns / 1e9) + " s";
}

std::string rate(double per_second) {
  if (per_second < 1e3) return significant(per_second) + " /s";
  if (per_second < 1e6) return significant(per_second / 1e3) + " k/s";
  return significant(per_second / 1e6) + " M/s";
}

}  // namespace abxbus::perf

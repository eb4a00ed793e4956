#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace abxbus::test {

/// How often a stress test repeats: `full` times, or the part of it that the environment variable
/// ABXBUS_STRESS_PERCENT asks for (sanitizer builds take a small one). Never less than 1.
inline std::size_t stress_count(std::size_t full) {
  const char* const text = std::getenv("ABXBUS_STRESS_PERCENT");
  if (text == nullptr) return full;
  const double percent = std::strtod(text, nullptr);
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(full) * percent / 100.0));
}

}  // namespace abxbus::test

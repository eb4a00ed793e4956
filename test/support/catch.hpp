#pragma once

// Catch2, whichever of the two generations is installed. Tests include this header and no other of Catch2's.

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define ABXBUS_CATCH_VERSION 3
#else
#include <catch2/catch.hpp>
#define ABXBUS_CATCH_VERSION 2
#endif

namespace abxbus::test {

/// Matcher for REQUIRE_THAT: the text contains `part`. The two generations name it differently.
inline auto contains(const std::string& part) {
#if ABXBUS_CATCH_VERSION >= 3
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

using Catch::Approx;

}  // namespace abxbus::test

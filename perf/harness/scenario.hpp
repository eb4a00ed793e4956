#pragma once

#include "harness/progress.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace abxbus::perf {

/// A check of a scenario that did not hold.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check(bool holds, const std::string& message) {
  if (!holds) throw CheckFailed(message);
}

/// Counts and checksums.
template <class A, class B>
void check_equal(std::string_view what, const A& found, const B& expected) {
  if (!std::cmp_equal(found, expected))
    throw CheckFailed(std::string(what) + ": " + std::to_string(found) + " instead of " + std::to_string(expected));
}

/// A figure of one scenario only. An empty group stands for the scenario as a whole.
struct Extra {
  std::string group;
  std::string name;
  double value = 0;
};

/// What one repetition measured.
struct Sample {
  std::int64_t total_ns = 0;
  std::int64_t count = 0;  ///< units done in that time
  std::optional<double> live_bytes_per_unit = {};
  std::optional<double> peak_bytes_per_unit = {};
  std::vector<Extra> extra = {};
};

/// What a scenario is told about the run it is part of.
struct Run {
  bool quick = false;
  int workers = 0;  ///< 0: as many as the program takes by itself
  Progress& progress;
};

enum class Unit { event, handler };

inline std::string_view name_of(Unit unit) noexcept {
  return unit == Unit::event ? "event" : "handler";
}

/// One scenario of the specification: does the work, times it, and checks what came out.
struct Scenario {
  std::string_view id;
  Unit unit = Unit::event;
  int repeat = 7;
  int warmup = 1;
  bool sleeps = false;  ///< made of sleeping handlers: the budget a unit (P-DRV-5) says nothing about it
  Sample (*run)(const Run&) = nullptr;
};

}  // namespace abxbus::perf

#pragma once

#include "harness/options.hpp"
#include "harness/scenario.hpp"

#include <span>
#include <string_view>

namespace abxbus::perf {

/// A program that measures: its scenarios, and the few things the harness cannot know of it.
struct Program {
  std::string_view name;     ///< of the executable
  std::string_view runtime;  ///< its name in upstream's matrix
  std::span<const Scenario> scenarios;
  /// Before anything runs.
  void (*configure)(const Options& options) = nullptr;
  /// Worker threads in force.
  int (*workers)(const Options& options) = nullptr;
  /// Before each scenario: hands cached memory back, so that each starts alike.
  void (*settle)() = nullptr;
  /// After each scenario: throws CheckFailed when something is left behind.
  void (*check_nothing_left)() = nullptr;
};

/// The whole program; returns its exit code (P-DRV-1).
int run_program(const Program& program, int argc, const char* const* argv);

}  // namespace abxbus::perf

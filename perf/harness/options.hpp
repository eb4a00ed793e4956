#pragma once

#include "harness/scenario.hpp"

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace abxbus::perf {

/// What the command line asks for.
struct Options {
  std::vector<const Scenario*> scenarios;  ///< in the order asked for; all when none was named
  std::optional<int> repeat = {};
  std::optional<int> warmup = {};
  int workers = 0;
  std::string json_file = {};
  bool quick = false;
  bool list = false;
  bool help = false;
  bool allow_debug = false;
};

/// A command line that cannot be understood.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Options parse_options(std::span<const char* const> arguments, std::span<const Scenario> scenarios);

std::string usage(std::string_view program);

}  // namespace abxbus::perf

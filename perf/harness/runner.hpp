#pragma once

#include "harness/machine.hpp"
#include "harness/options.hpp"
#include "harness/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abxbus::perf {

struct Program;

/// All repetitions of one scenario, brought together.
struct Result {
  const Scenario* scenario = nullptr;
  std::int64_t count = 0;  ///< units of one repetition
  std::vector<std::int64_t> total_ns = {};
  std::vector<double> ns_per_unit = {};
  std::optional<double> live_bytes_per_unit = {};  ///< the highest of the repetitions, as the next two
  std::optional<double> peak_bytes_per_unit = {};
  std::optional<double> peak_rss_bytes_per_unit = {};
  std::vector<Extra> extra = {};  ///< medians of the repetitions
  Reference reference = {};       ///< taken just before
  std::string failure = {};       ///< empty: every check held

  bool measured() const noexcept { return !ns_per_unit.empty(); }
  double median_ns() const;
  double min_ns() const;
  double max_ns() const;
  double median_total_ns() const;
  /// An extra figure of the scenario as a whole.
  std::optional<double> extra_value(std::string_view name) const;
};
using Results = std::vector<Result>;

/// Warms up, repeats, checks. A failed check ends up in the result, not in an exception.
Result run_scenario(const Program& program, const Scenario& scenario, const Options& options);

}  // namespace abxbus::perf

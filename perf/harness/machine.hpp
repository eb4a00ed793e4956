#pragma once

#include <optional>
#include <string>

namespace abxbus::perf {

/// Where and how this program runs.
struct Machine {
  std::string cpu;
  int cores = 0;  ///< that this process may use
  std::string compiler;
  std::string build_type;
  std::string allocator;
  int workers = 0;
};

Machine describe_machine(int workers);

/// Compiled with optimisation and without sanitizers (P-DRV-6).
bool is_optimised_build() noexcept;

/// The state the machine is in (P-DRV-7): figures of two runs compare as ratios to these.
struct Reference {
  double loop_ns = 0;                        ///< 3 clock readings and 5 locked increments
  std::optional<double> round_trip_ns = {};  ///< spinning, between two cores; none on a single core
};

/// Takes about ten milliseconds.
Reference measure_reference();

}  // namespace abxbus::perf

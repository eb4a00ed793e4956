#pragma once

#include "harness/scenario.hpp"

namespace abxbus::perf {

/// Starts the threads that the scenarios below share; 0: one a core.
void start_baseline(int workers);

/// Threads in force.
int baseline_workers() noexcept;

// The four scenarios that the program can do, each with the library's counts and checks as far as they apply.
Sample baseline_many_events(const Run& run);
Sample baseline_many_buses(const Run& run);
Sample baseline_many_handlers(const Run& run);
Sample baseline_one_off_handlers(const Run& run);

}  // namespace abxbus::perf

#include "harness/program.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <abxbus/domain.hpp>
#include <abxbus/memory.hpp>

#include <array>
#include <cstdlib>
#include <string>

namespace abxbus::perf {

namespace {

constexpr std::array<Scenario, 9> scenarios{{
    {.id = "50k-events", .run = &many_events},
    {.id = "500-buses-x-100-events", .run = &many_buses},
    {.id = "1-event-x-50k-parallel-handlers", .unit = Unit::handler, .run = &many_handlers},
    {.id = "50k-one-off-handlers", .run = &one_off_handlers},
    {.id = "worst-case-forwarding-timeouts", .run = &forwarding_timeouts},
    {.id = "worst-case-parent-child-timeouts", .run = &parent_child_timeouts},
    {.id = "cleanup-equivalence", .run = &cleanup_equivalence},
    {.id = "fanout-io", .repeat = 1, .warmup = 0, .sleeps = true, .run = &fanout_io},
    {.id = "sustained", .repeat = 1, .warmup = 0, .run = &sustained},
}};

// The default executor reads its size from the environment when it is first used.
void configure(const Options& options) {
  if (options.workers > 0) ::setenv("ABXBUS_WORKERS", std::to_string(options.workers).c_str(), 1);
}

int workers(const Options&) {
  return Executor::default_executor().workers();
}

void settle() {
  collect_memory();
}

void check_nothing_left() {
  check(eventually([] { return total_live_bytes() == 0; }),
        std::to_string(total_live_bytes()) + " bytes are still alive after the last bus");
  check_equal("buses in the registry", live_bus_count(), 0);
}

}  // namespace

}  // namespace abxbus::perf

int main(int argc, char** argv) {
  using namespace abxbus::perf;
  return run_program({.name = "abxbus_perf",
                      .runtime = "C++ (abxbus-cpp)",
                      .scenarios = scenarios,
                      .configure = &configure,
                      .workers = &workers,
                      .settle = &settle,
                      .check_nothing_left = &check_nothing_left},
                     argc, argv);
}

#include "baseline/baseline_scenarios.hpp"
#include "harness/program.hpp"

#include <mimalloc.h>

#include <array>

namespace abxbus::perf {

namespace {

constexpr std::array<Scenario, 4> scenarios{{
    {.id = "50k-events", .run = &baseline_many_events},
    {.id = "500-buses-x-100-events", .run = &baseline_many_buses},
    {.id = "1-event-x-50k-parallel-handlers", .unit = Unit::handler, .run = &baseline_many_handlers},
    {.id = "50k-one-off-handlers", .run = &baseline_one_off_handlers},
}};

void configure(const Options& options) {
  start_baseline(options.workers);
}

int workers(const Options&) {
  return baseline_workers();
}

void settle() {
  mi_collect(false);
}

}  // namespace

}  // namespace abxbus::perf

int main(int argc, char** argv) {
  using namespace abxbus::perf;
  return run_program({.name = "abxbus_baseline",
                      .runtime = "C++ (hand-written baseline)",
                      .scenarios = scenarios,
                      .configure = &configure,
                      .workers = &workers,
                      .settle = &settle},
                     argc, argv);
}

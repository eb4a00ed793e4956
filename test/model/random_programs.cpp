// Random programs of buses, handlers and threads, and what must hold after each.
//
// ABXBUS_MODEL_PROGRAMS=n runs n of them, ABXBUS_MODEL_SEED=s begins at that seed: a failure prints its seed, and
// ABXBUS_MODEL_SEED=s ABXBUS_MODEL_PROGRAMS=1 runs it again. What threads do side by side may differ then; the program
// does not.

#include "model/check.hpp"
#include "model/execute.hpp"
#include "model/generate.hpp"
#include "support/catch.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What is wrong after the program with that seed, "" if nothing.
std::string run(const model::Program& program) {
  std::string wrong;
  {
    model::World world(program);
    if (!world.run()) return "  does not become quiet\n" + world.unfinished();
    const model::Check check(world);
    for (const std::string& problem : check.problems()) wrong += "  " + problem + "\n";
    world.end();
  }
  if (!testing::eventually([] { return abxbus::total_live_bytes() == 0; })) {
    wrong += "  " + std::to_string(abxbus::total_live_bytes()) + " bytes are left\n";
  }
  return wrong;
}

}  // namespace

TEST_CASE("random programs keep what every program must keep", "[model][S-JMP-24][S-MT-1][P-MEM-3]") {
  const testing::CapturedLog quiet(abxbus::LogLevel::error);
  const std::uint64_t first = number_from("ABXBUS_MODEL_SEED", 1);
  const std::uint64_t count = number_from("ABXBUS_MODEL_PROGRAMS", testing::sanitized ? 2000 : 20000);
  REQUIRE(count > 0);
  std::uint64_t seed = first;
  std::string failure;
  testing::Watchdog watchdog("a random program; the last seed stands above");
  for (; seed < first + count && failure.empty(); ++seed) {
    watchdog.alive();
    const model::Program program = model::random_program(seed);
    const std::string wrong = run(program);
    if (!wrong.empty()) failure = wrong + model::describe(program);
  }
  INFO(failure);
  INFO("again: ABXBUS_MODEL_SEED=" << seed - 1 << " ABXBUS_MODEL_PROGRAMS=1");
  REQUIRE(failure.empty());
}

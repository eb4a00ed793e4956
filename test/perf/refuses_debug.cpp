// A build without optimisation measures nothing unless told to.

#include "support/catch.hpp"

#include <cstdlib>
#include <string>
#include <sys/wait.h>

TEST_CASE("a build that is not optimised refuses to measure", "[P-DRV-6]") {
  const std::string program = std::string("'") + ABXBUS_PERF_PROGRAM + "' --quick --scenario cleanup-equivalence";
  const auto status = [&](const char* more) {
    return WEXITSTATUS(std::system((program + more + " >/dev/null 2>&1").c_str()));
  };
  CHECK(status("") != 0);
  CHECK(status(" --allow-debug") == 0);
}

// The main function of every test program: Catch2's, and then a last look at the library's own memory.

#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include <abxbus/memory.hpp>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

namespace {

/// P-MEM-3: with the last bus and the last event handle nothing is left. Workers that are about to let go of an event
/// get the time to do so.
bool nothing_left() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (abxbus::total_live_bytes() != 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int result = Catch::Session().run(argc, argv);
  // Test cases that run in a process of their own leave objects of static storage behind, on purpose.
  const bool keeps_objects = argc > 1 && std::string_view(argv[1]).starts_with("subprocess ");
  if (result == 0 && !keeps_objects && !nothing_left()) {
    std::fprintf(stderr, "[P-MEM-3] %lld bytes are still alive after the last test\n",
                 static_cast<long long>(abxbus::total_live_bytes()));
    return 1;
  }
  return result;
}

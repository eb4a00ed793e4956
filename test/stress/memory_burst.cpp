// Memory after bursts, across threads, and with very many handlers.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/subprocess.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Reading {
  std::int64_t value = 0;
  std::int64_t batch = 0;
  using event_result_type = std::int64_t;
};

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  long total = 0;
  long resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Queues `count` events behind a closed door, lets them run, and returns how many ran.
std::int64_t burst(int count) {
  Gate gate;
  EventBus bus("StressBurst", {.max_history_size = 128, .max_history_drop = true});
  const OpenAtExit opener(gate);
  std::int64_t handled = 0;
  bus.on<Reading>([&](const Reading& reading) {
    if (reading.value == 0) gate.wait(std::chrono::minutes(5));
    ++handled;
    return reading.value;
  });
  for (int i = 0; i < count; ++i) bus.emit(Reading{i, i % 17});
  gate.open();
  bus.wait_until_idle();
  return handled;
}

// Symptom elsewhere: what a burst took is never given back; blocks freed on another thread keep the resident set high.
TEST_CASE("subprocess a burst gives its memory back", "[.][subprocess]") {
  const QuietLog quiet;
  const int large = scaled(1000000, 100000);
  REQUIRE(burst(10000) == 10000);
  std::this_thread::sleep_for(2s);
  const double small_run = resident_megabytes();
  REQUIRE(burst(large) == large);
  std::this_thread::sleep_for(2s);
  const double after = resident_megabytes();
  collect_memory();
  const double collected = resident_megabytes();
  INFO("resident MiB: " << small_run << " after 10 000 events, " << after << " after " << large << ", " << collected
                        << " after collect_memory()");
  CHECK(total_live_bytes() == 0);
  // Measured: 10 MB after 10 000 events, 340 at the peak of 1 000 000, 8 after them.
  CHECK(after <= 1.2 * small_run);
  CHECK(collected <= 1.2 * small_run);
}

TEST_CASE("after a burst of a million events the resident set is back", "[stress][P-MEM-4]") {
  const Watchdog watchdog("burst");
  // Other allocators keep what they like.
  if (process_memory().resident_bytes == 0) return;
  CHECK(run_in_subprocess("subprocess a burst gives its memory back") == 0);
}

TEST_CASE("a long run does not grow", "[stress][P-MEM-2]") {
  Watchdog watchdog("long run");
  EventBus bus("StressLongRun", {.max_history_size = 128, .max_history_drop = true});
  bus.on<Reading>([](const Reading& reading) { return reading.value; });
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      bus.emit(Reading{i, 0});
      if (i % 4096 == 0) {
        bus.wait_until_idle();
        watchdog.alive();
      }
    }
    bus.wait_until_idle();
  };
  run(50000);
  const double resident = resident_megabytes();
  const std::int64_t live = bus.memory().live_bytes;
  run(scaled(10000000, 200000));
  CHECK(bus.memory().live_events <= 128);
  CHECK(bus.memory().live_bytes <= live + live / 2 + (std::int64_t{64} << 10));
  if (!sanitized) CHECK(resident_megabytes() <= 1.2 * resident + 16);  // else the allocator keeps what is freed
}

TEST_CASE("a million handlers on one key, one removed at once", "[stress][S-REG-11][S-REG-4]") {
  Watchdog watchdog("a million handlers");
  const int count = scaled(1000000, 50000);
  EventBus bus("StressMillion", {.event_timeout = 0s, .max_history_size = 0, .warn_on_duplicate_handler_names = false});
  std::int64_t sum = 0;
  std::int64_t calls = 0;
  std::vector<EventHandler> handlers;
  handlers.reserve(static_cast<std::size_t>(count));
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    handlers.push_back(bus.on<Reading>([&sum, &calls, i](const Reading&) {
      // The order shows in the sum.
      sum += i * (++calls % 3);
    }));
  }
  CHECK(seconds_since(start) < 60.0);
  CHECK(bus.handler_count() == static_cast<std::size_t>(count));

  std::vector<double> removals;
  std::vector<bool> removed(static_cast<std::size_t>(count));
  std::mt19937 random(1);
  while (removals.size() < 2000) {
    const std::size_t index = random() % static_cast<std::size_t>(count);
    if (removed[index]) continue;
    removed[index] = true;
    const auto removal = Clock::now();
    bus.off(handlers[index]);
    removals.push_back(seconds_since(removal));
  }
  std::nth_element(removals.begin(), removals.begin() + 1000, removals.end());
  // 0.8 us measured. The first removal of a process takes 8: its code and the allocator's are cold.
  if (!sanitized) CHECK(removals[1000] < 2e-6);
  CHECK(bus.handler_count() == static_cast<std::size_t>(count) - removals.size());

  bus.emit(Reading{}).wait();
  std::int64_t expected = 0;
  std::int64_t call = 0;
  for (int i = 0; i < count; ++i)
    if (!removed[static_cast<std::size_t>(i)]) expected += i * (++call % 3);
  CHECK(calls == count - 2000);
  CHECK(sum == expected);

  const auto all = Clock::now();
  bus.off<Reading>();
  CHECK(seconds_since(all) < 30.0);
  CHECK(bus.handler_count() == 0);
}

}  // namespace

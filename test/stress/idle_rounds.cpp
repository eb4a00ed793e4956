// One event at a time, so often that a lost wake-up shows.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct One {
  int number = 0;
};

/// Calls `round` that many times; the longest took this many seconds.
template <class F>
double slowest_of(Watchdog& watchdog, int rounds, F round) {
  double slowest = 0;
  auto start = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    round(i);
    const auto end = Clock::now();
    slowest = std::max(slowest, std::chrono::duration<double>(end - start).count());
    start = end;
    if (i % 1024 == 0) watchdog.alive();
  }
  return slowest;
}

// Symptom elsewhere: a wake-up is lost between a spawn and the last thread that leaves the arena.
TEST_CASE("emit one, wait until idle, a million times", "[stress][S-IDLE-8][S-MT-10]") {
  Watchdog watchdog("emit one, wait until idle", std::chrono::minutes(1));
  EventBus bus("StressIdle", {.max_history_size = 0});
  int handled = 0;
  bus.on<One>([&](const One&) { ++handled; });
  const int rounds = scaled(1000000, 2000);
  int wrong = 0;
  const double slowest = slowest_of(watchdog, rounds, [&](int i) {
    bus.emit(One{i});
    if (!bus.wait_until_idle() || handled != i + 1) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(handled == rounds);
  CHECK(slowest < 5.0);
}

TEST_CASE("emit one, now or wait", "[stress][S-JMP-26][S-WAIT-2][S-MT-10]") {
  Watchdog watchdog("emit one, now or wait", std::chrono::minutes(1));
  EventBus bus("StressNow", {.max_history_size = 0});
  int handled = 0;
  bus.on<One>([&](const One&) { ++handled; });
  const int rounds = scaled(400000, 2000);
  const double slowest = slowest_of(watchdog, rounds, [&](int i) {
    const auto event = bus.emit(One{i});
    if (i % 2 == 0)
      event.now();
    else
      event.wait();
  });
  REQUIRE(bus.wait_until_idle());
  CHECK(handled == rounds);
  CHECK(slowest < 5.0);
}

TEST_CASE("several threads wait for one bus to become idle", "[stress][S-IDLE-8][S-IDLE-6]") {
  Watchdog watchdog("several idle waiters", std::chrono::minutes(1));
  EventBus bus("StressIdleMany", {.event_concurrency = EventConcurrency::parallel, .max_history_size = 0});
  std::atomic<int> wrong{0};
  bus.on("*", [](const BaseEvent&) {});
  const int rounds = scaled(50000, 500);
  std::vector<std::thread> waiters;
  for (int t = 0; t < 4; ++t) {
    waiters.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const auto event = bus.emit(One{i});
        if (!bus.wait_until_idle() || event.event_status() != EventStatus::completed) ++wrong;
      }
    });
  }
  for (auto& waiter : waiters) waiter.join();
  CHECK(wrong == 0);
}

// The same with the pool's threads asleep: each round starts after a pause long enough for them to park.
TEST_CASE("a sleeping pool wakes for every event", "[stress][S-MT-10]") {
  Watchdog watchdog("sleeping pool", std::chrono::minutes(1));
  EventBus bus("StressSleeping", {.max_history_size = 0});
  bus.on<One>([](const One&) {});
  const int rounds = scaled(2000, 100);
  const double slowest = slowest_of(watchdog, rounds, [&](int i) {
    std::this_thread::sleep_for(std::chrono::microseconds(i % 10 * 100));
    bus.emit(One{i}).wait();
  });
  CHECK(slowest < 5.0);
}

}  // namespace

// Hundreds of handlers that block at once.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Block {
  int number = 0;
};
struct Quick {
  int number = 0;
};

TEST_CASE("hundreds of handlers block in user code while others go on", "[stress][S-MT-6][Q-10][T-CAN-21]") {
  const Watchdog watchdog("blocked in user code", std::chrono::minutes(3));
  const int count = scaled(500, 100);
  Gate gate;
  EventBus blocked("StressBlocked",
                   {.event_concurrency = EventConcurrency::parallel, .max_history_size = std::nullopt});
  EventBus quick("StressQuick", {.max_history_size = 0});
  const OpenAtExit opener(gate);
  std::atomic<int> done{0};
  blocked.on<Block>([&](const Block&) {
    if (gate.wait(std::chrono::minutes(5))) ++done;
  });
  quick.on<Quick>([](const Quick&) {});
  std::vector<Event<Block>> events;
  for (int i = 0; i < count; ++i) events.push_back(blocked.emit(Block{i}));
  REQUIRE(gate.wait_for_arrivals(count, std::chrono::minutes(2)));
  for (int i = 0; i < 1000; ++i) quick.emit(Quick{i});
  CHECK(quick.wait_until_idle(patience));
  CHECK(quick.emit(Quick{}).now({.timeout = patience}).event_status() == EventStatus::completed);
  gate.open();
  for (const auto& event : events) event.wait();
  CHECK(done == count);
}

TEST_CASE("hundreds of parallel handlers of one event block at once", "[stress][S-MT-6][S-HND-4]") {
  const Watchdog watchdog("blocked handlers of one event", std::chrono::minutes(3));
  const int count = scaled(300, 60);
  Gate gate;
  EventBus bus("StressBlockedOne", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  const OpenAtExit opener(gate);
  for (int i = 0; i < count; ++i)
    bus.on<Block>([&gate, i](const Block&) { return gate.wait(std::chrono::minutes(5)) ? i : -1; });
  const auto event = bus.emit(Block{});
  REQUIRE(gate.wait_for_arrivals(count, std::chrono::minutes(2)));
  gate.open();
  event.wait();
  int right = 0;
  int expected = 0;
  for (const auto& result : event.event_results())
    if (result.result_as<int>() == std::optional(expected++)) ++right;
  CHECK(right == count);
}

// Symptom elsewhere: a blocking wait from a pool thread deadlocks the pool.
TEST_CASE("hundreds of handlers wait for children at once", "[stress][S-MT-6][T-CAN-22]") {
  const Watchdog watchdog("blocked in the library", std::chrono::minutes(3));
  const int count = scaled(300, 60);
  for (const bool by_now : {true, false}) {
    const std::string suffix = by_now ? "Now" : "Wait";
    const Executor executor({.workers = 2});
    EventBus parents(
        "StressParents" + suffix,
        {.event_concurrency = EventConcurrency::parallel, .max_history_size = std::nullopt, .executor = executor});
    EventBus children(
        "StressChildren" + suffix,
        {.event_concurrency = EventConcurrency::parallel, .max_history_size = std::nullopt, .executor = executor});
    Gate gate;
    const OpenAtExit opener(gate);
    std::atomic<int> done{0};
    children.on<Quick>([&](const Quick&) { gate.wait(std::chrono::minutes(5)); });
    parents.on<Block>([&](const Block& block) {
      const auto child = children.emit(Quick{block.number});
      if (by_now)
        child.now();
      else
        child.wait();
      ++done;
    });
    for (int i = 0; i < count; ++i) parents.emit(Block{i});
    REQUIRE(gate.wait_for_arrivals(count, std::chrono::minutes(2)));
    gate.open();
    CHECK(parents.wait_until_idle());
    CHECK(done == count);
  }
}

TEST_CASE("the handlers of many serial buses block at once", "[stress][S-MT-6][S-BUS-16]") {
  const Watchdog watchdog("many serial buses", std::chrono::minutes(3));
  const int count = scaled(300, 60);
  Gate gate;
  std::vector<EventBus> buses;
  const OpenAtExit opener(gate);
  std::vector<Event<Block>> events;
  for (int i = 0; i < count; ++i) {
    buses.emplace_back("StressSerial" + std::to_string(i));
    buses.back().on<Block>([&](const Block&) { gate.wait(std::chrono::minutes(5)); });
  }
  for (auto& bus : buses) events.push_back(bus.emit(Block{}));
  REQUIRE(gate.wait_for_arrivals(count, std::chrono::minutes(2)));
  gate.open();
  for (const auto& event : events) event.wait();
  for (const auto& bus : buses) CHECK(bus.wait_until_idle(patience));
}

}  // namespace

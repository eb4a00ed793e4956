// What users of comparable libraries reported about running handlers: each symptom as a test.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Ping {
  int number = 0;
};
struct Parent {
  int number = 0;
};
struct Child {
  int number = 0;
};

// Symptom: two producers that hand over to each other see their elements come out in another order.
TEST_CASE("emitters that take turns keep their order", "[S-MT-2]") {
  constexpr int count = 5000;
  EventBus bus("PitfallTurns", {.max_history_size = std::nullopt});
  std::vector<int> seen;
  bus.on<Ping>([&](const Ping& ping) { seen.push_back(ping.number); });
  std::atomic<int> turn{0};
  std::vector<std::thread> emitters;
  for (int t = 0; t < 2; ++t) {
    emitters.emplace_back([&, t] {
      for (int i = t; i < count; i += 2) {
        while (turn.load(std::memory_order_acquire) != i) std::this_thread::yield();
        bus.emit(Ping{i});
        turn.store(i + 1, std::memory_order_release);
      }
    });
  }
  for (auto& thread : emitters) thread.join();
  REQUIRE(bus.wait_until_idle(patience));
  REQUIRE(seen.size() == count);
  int wrong = 0;
  for (int i = 0; i < count; ++i)
    if (seen[static_cast<std::size_t>(i)] != i) ++wrong;
  CHECK(wrong == 0);
}

// Symptom: an element is queued, its task starts, and the task finds the queue empty.
TEST_CASE("an event that was emitted has its result when the bus is idle", "[S-IDLE-6]") {
  const Executor executor({.workers = 8});
  EventBus bus("PitfallEmptyQueue", {.max_history_size = std::nullopt, .executor = executor});
  bus.on<Ping>([](const Ping& ping) { return ping.number; });
  int without = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<Event<Ping>> events;
    for (int i = 0; i < 100; ++i) events.push_back(bus.emit(Ping{i}));
    REQUIRE(bus.wait_until_idle(patience));
    for (const auto& event : events)
      if (event.event_results().size() != 1 || event.event_status() != EventStatus::completed) ++without;
  }
  CHECK(without == 0);
}

// Symptom: waiting for a child from a pool thread deadlocks the pool as soon as all of its threads wait.
TEST_CASE("as many handlers as there are workers wait for children at once", "[S-MT-6][T-CAN-22]") {
  for (const bool by_now : {true, false}) {
    constexpr int workers = 2;
    constexpr int parents = 3 * workers;
    const Executor executor({.workers = workers});
    const std::string suffix = by_now ? "Now" : "Wait";
    EventBus parents_bus("PitfallParents" + suffix,
                         {.event_concurrency = EventConcurrency::parallel, .executor = executor});
    EventBus children_bus("PitfallChildren" + suffix, {.executor = executor});
    Gate all_here;
    const OpenAtExit opener(all_here);
    children_bus.on<Child>([](const Child& child) { return child.number; });
    std::atomic<int> done{0};
    parents_bus.on<Parent>([&](const Parent& parent) {
      all_here.wait();
      const auto child = children_bus.emit(Child{parent.number});
      if (by_now)
        child.now();
      else
        child.wait();
      ++done;
    });
    std::vector<Event<Parent>> events;
    for (int i = 0; i < parents; ++i) events.push_back(parents_bus.emit(Parent{i}));
    REQUIRE(all_here.wait_for_arrivals(parents));
    all_here.open();
    for (const auto& event : events) settled(event);
    CHECK(done == parents);
  }
}

// Symptom: a wake-up is lost between the last thread that goes to sleep and the next piece of work.
TEST_CASE("emit one, wait until idle, again and again, never stalls", "[S-IDLE-8][S-MT-10]") {
  EventBus bus("PitfallWakeUp", {.max_history_size = 0});
  int handled = 0;
  bus.on<Ping>([&](const Ping&) { ++handled; });
  constexpr int rounds = 3000;
  int late = 0;
  for (int i = 0; i < rounds; ++i) {
    bus.emit(Ping{i});
    if (!bus.wait_until_idle(patience)) ++late;
  }
  CHECK(late == 0);
  CHECK(handled == rounds);
}

// Symptom: blocking work in the pool's threads starves everybody else.
TEST_CASE("a bus whose handlers block does not hold up another bus", "[S-MT-15][S-MT-6]") {
  const Executor executor({.workers = 2});
  Gate gate;
  EventBus busy("PitfallBusy", {.event_handler_concurrency = EventHandlerConcurrency::parallel, .executor = executor});
  EventBus other("PitfallOther", {.executor = executor});
  const OpenAtExit opener(gate);
  for (int i = 0; i < 4; ++i) busy.on<Ping>([&](const Ping&) { gate.wait(); });
  other.on<Ping>([](const Ping&) { return 1; });
  busy.emit(Ping{});
  REQUIRE(gate.wait_for_arrivals(4));
  const auto start = Clock::now();
  const auto event = settled(other.emit(Ping{}));
  CHECK(seconds_since(start) < 2.0);
  CHECK(event.event_results().size() == 1);
}

// Symptom: a limit on the number of threads is ignored. Handlers that were preempted may bring a spare thread in, so
// a loaded machine gets several chances.
TEST_CASE("short handlers run on no more threads than asked for", "[S-BUS-16][T-CAN-21]") {
  std::size_t fewest = 1000;
  for (int attempt = 0; attempt < 20 && fewest > 2; ++attempt) {
    const Executor executor({.workers = 2});
    CHECK(executor.workers() == 2);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    EventBus bus("PitfallThreads", {.event_concurrency = EventConcurrency::parallel,
                                    .event_handler_concurrency = EventHandlerConcurrency::parallel,
                                    .max_history_size = 0,
                                    .executor = executor});
    for (int i = 0; i < 4; ++i) {
      bus.on<Ping>([&](const Ping&) {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
    }
    for (int i = 0; i < 200; ++i) bus.emit(Ping{i});
    REQUIRE(bus.wait_until_idle(patience));
    fewest = std::min(fewest, threads.size());
  }
  CHECK(fewest >= 1);
  CHECK(fewest <= 2);
}

// Symptom: an exception drops the rest of the queue, leaves a lock held or ends the thread.
TEST_CASE("a handler that throws anything disturbs no other handler and no later event", "[S-HND-8][Q-8]") {
  struct NoException {};
  EventBus bus("PitfallThrow", {.max_history_size = std::nullopt});
  const CapturedLog log;
  int handled = 0;
  bus.on<Ping>([](const Ping& ping) {
    if (ping.number == 0) throw std::runtime_error("thrown");
    if (ping.number == 1) throw NoException{};
  });
  bus.on<Ping>([&](const Ping&) { return ++handled; });
  bus.on<Ping>([&](const Ping&) { return ++handled; });
  std::vector<Event<Ping>> events;
  for (int i = 0; i < 1002; ++i) events.push_back(bus.emit(Ping{i}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(handled == 2 * 1002);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const EventResults results = events[i].event_results();
    REQUIRE(results.size() == 3);
    REQUIRE(results[0].status() == (i < 2 ? EventResultStatus::error : EventResultStatus::completed));
    REQUIRE(results[1].status() == EventResultStatus::completed);
    REQUIRE(results[2].status() == EventResultStatus::completed);
  }
  CHECK(events[0].event_results()[0].error_message() == "thrown");
  CHECK(static_cast<bool>(events[1].event_results()[0].error()));
}

// Symptom: a handler that waits for its child runs whatever else is queued meanwhile, on its own stack, in any order.
TEST_CASE("awaiting a child leaves other buses to themselves, in their order", "[S-JMP-23]") {
  EventBus a("PitfallDrainA");
  EventBus b("PitfallDrainB");
  Gate child_runs;
  Gate release_child;
  Recorder order;
  const OpenAtExit opener(release_child);
  a.on<Parent>([&](const Event<Parent>& event) {
    event.emit(Child{1}).now();
    order.add("parent end");
  });
  a.on<Child>([&](const Child&) {
    child_runs.open();
    release_child.wait();
    order.add("child end");
  });
  b.on<Ping>([&](const Ping& ping) { order.add("ping " + std::to_string(ping.number)); });
  const auto parent = a.emit(Parent{});
  REQUIRE(child_runs.wait());
  for (int i = 0; i < 3; ++i) b.emit(Ping{i});
  REQUIRE(b.wait_until_idle(patience));
  CHECK(order.notes() == std::vector<std::string>{"ping 0", "ping 1", "ping 2"});
  release_child.open();
  settled(parent);
  CHECK(order.notes() == std::vector<std::string>{"ping 0", "ping 1", "ping 2", "child end", "parent end"});
}

}  // namespace

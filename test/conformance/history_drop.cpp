// Event history, drop mode: what is evicted and when, the warning, and that eviction only forgets the entry.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Ping {
  int number = 0;
};
struct Held {
  int number = 0;
};
struct Parent {};
struct Child {
  int number = 0;
};

TEST_CASE("completed entries go first, oldest first, then whatever is oldest", "[H-HIST-15]") {
  Gate gate;
  EventBus bus("DropOrder",
               {.event_concurrency = EventConcurrency::parallel, .max_history_size = 3, .max_history_drop = true});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  bus.on<Ping>([](const Ping&) {});
  const auto running_0 = bus.emit(Held{0});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto done_1 = settled(bus.emit(Ping{1}));
  const auto done_2 = settled(bus.emit(Ping{2}));
  CHECK(ids_of(bus.event_history().events()) ==
        std::vector<Uuid>{running_0.event_id(), done_1.event_id(), done_2.event_id()});

  const auto running_3 = bus.emit(Held{3});
  CHECK(ids_of(bus.event_history().events()) ==
        std::vector<Uuid>{running_0.event_id(), done_2.event_id(), running_3.event_id()});
  const auto running_4 = bus.emit(Held{4});
  CHECK(ids_of(bus.event_history().events()) ==
        std::vector<Uuid>{running_0.event_id(), running_3.event_id(), running_4.event_id()});
  const auto running_5 = bus.emit(Held{5});
  CHECK(ids_of(bus.event_history().events()) ==
        std::vector<Uuid>{running_3.event_id(), running_4.event_id(), running_5.event_id()});
}

TEST_CASE("started and pending entries are evicted by age, without distinction", "[H-HIST-15]") {
  Gate gate;
  EventBus bus("DropUnfinished", {.max_history_size = 2, .max_history_drop = true});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  bus.emit(Held{0});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.emit(Held{1});
  bus.emit(Held{2});
  CHECK(numbers_of<Held>(bus.event_history().events()) == std::vector<int>{1, 2});
  bus.emit(Held{3});
  CHECK(numbers_of<Held>(bus.event_history().events()) == std::vector<int>{2, 3});
}

TEST_CASE("an emit never evicts its own event", "[H-HIST-16]") {
  Gate gate;
  EventBus bus("DropOwn", {.max_history_size = 1, .max_history_drop = true});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  for (int i = 0; i < 20; ++i) {
    const auto event = bus.emit(Held{i});
    CHECK(ids_of(bus.event_history().events()) == std::vector<Uuid>{event.event_id()});
  }
}

TEST_CASE("the newest five of ten remain, in order", "[H-HIST-17]") {
  EventBus bus("DropFive", {.max_history_size = 5, .max_history_drop = true});
  bus.on<Ping>([](const Ping&) {});
  for (int i = 0; i < 10; ++i) settled(bus.emit(Ping{i}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(numbers_of<Ping>(bus.event_history().events()) == std::vector<int>{5, 6, 7, 8, 9});
}

TEST_CASE("after every emit the history is within a fifth of its limit, and within it when idle", "[H-HIST-17]") {
  EventBus bus("DropTiming", {.max_history_size = 25, .max_history_drop = true});
  bus.on<Ping>([](const Ping&) {});
  std::size_t largest = 0;
  for (int i = 0; i < 200; ++i) {
    bus.emit(Ping{i});
    largest = std::max(largest, bus.event_history().size());
  }
  CHECK(largest <= 30);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(bus.event_history().size() <= 25);
  for (int i = 0; i < 200; ++i) {
    settled(bus.emit(Ping{i}));
    REQUIRE(bus.wait_until_idle(patience));
    REQUIRE(bus.event_history().size() <= 25);
  }
  CHECK(numbers_of<Ping>(bus.event_history().events()).back() == 199);
}

TEST_CASE("the first eviction of an uncompleted entry warns, once a history", "[H-HIST-18]") {
  const CapturedLog log;
  Gate gate;
  EventBus bus("DropWarning", {.max_history_size = 2, .max_history_drop = true});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  const std::string warning = "[abxbus] ⚠️ Bus " + bus.label() +
                              " has exceeded max_history_size=2 and is dropping oldest history entries (even "
                              "uncompleted events). Increase max_history_size or set max_history_drop=false to reject.";
  bus.emit(Held{0});
  bus.emit(Held{1});
  CHECK(log.count(warning) == 0);
  bus.emit(Held{2});
  CHECK(log.wait_for(warning));
  for (int i = 3; i < 10; ++i) bus.emit(Held{i});
  gate.open();
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(log.count(warning) == 1);
}

TEST_CASE("evicting completed entries does not warn", "[H-HIST-18]") {
  const CapturedLog log;
  EventBus bus("DropQuiet", {.max_history_size = 2, .max_history_drop = true});
  for (int i = 0; i < 10; ++i) settled(bus.emit(Ping{i}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(log.count("has exceeded max_history_size") == 0);
}

TEST_CASE("an evicted event is still processed in its turn and completes", "[H-HIST-19]") {
  Gate gate;
  Recorder order;
  EventBus bus("DropProcessed", {.max_history_size = 1, .max_history_drop = true});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held& held) {
    gate.wait();
    order.add(std::to_string(held.number));
    return held.number;
  });
  std::vector<Event<Held>> events;
  for (int i = 0; i < 5; ++i) events.push_back(bus.emit(Held{i}));
  REQUIRE(gate.wait_for_arrivals(1));

  const auto& evicted = events[2];
  CHECK_FALSE(bus.event_history().has_event(evicted.event_id()));
  CHECK_FALSE(bus.find<Held>({.where = [](const Event<Held>& each) { return each->number == 2; }}).has_value());
  CHECK(ids_of(bus.events_pending()) == std::vector<Uuid>{events[4].event_id()});
  CHECK(bus.events_started().empty());
  CHECK(bus.pending_event_queue().size() == 4);
  auto waiting = evicted.wait_async();
  gate.open();
  CHECK(waiting.get() == evicted);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(order.notes() == std::vector<std::string>{"0", "1", "2", "3", "4"});
  for (const auto& event : events) {
    CHECK(event.event_status() == EventStatus::completed);
    REQUIRE(event.event_results().size() == 1);
    CHECK(event.event_results()[0].result_as<int>() == std::optional(event->number));
    CHECK(event.event_bus() == bus);
  }
}

TEST_CASE("parents and children complete although the history forgot them", "[H-HIST-19][H-LIN-2]") {
  EventBus bus("DropLineage", {.max_history_size = 1, .max_history_drop = true});
  bus.on<Parent>([](const Event<Parent>& event) {
    const auto child = event.emit(Child{1});
    event.emit(Child{2});
    child.now();
    return 1;
  });
  bus.on<Child>([](const Child& child) { return child.number; });
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK_FALSE(bus.event_history().has_event(parent.event_id()));
  const std::vector<BaseEvent> children = parent.event_children();
  REQUIRE(children.size() == 2);
  for (const auto& child : children) CHECK(child.event_status() == EventStatus::completed);
  CHECK(children[0].event_blocks_parent_completion());
}

TEST_CASE("three of five are remembered, all five are handled in order", "[H-HIST-20]") {
  const CapturedLog log;
  Gate gate;
  Recorder order;
  EventBus bus("DropExample", {.max_history_size = 3, .max_history_drop = true});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held& held) {
    gate.wait();
    order.add(std::to_string(held.number));
  });
  bus.emit(Held{0});
  REQUIRE(gate.wait_for_arrivals(1));
  for (int i = 1; i < 5; ++i) bus.emit(Held{i});
  CHECK(numbers_of<Held>(bus.event_history().events()) == std::vector<int>{2, 3, 4});
  CHECK(log.wait_for("has exceeded max_history_size=3"));
  CHECK(log.count("has exceeded max_history_size=3") == 1);
  gate.open();
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(order.notes() == std::vector<std::string>{"0", "1", "2", "3", "4"});
}

}  // namespace

// Event history: what it holds and when, its settings, unbounded mode.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

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

TEST_CASE("history holds the emitted events themselves in the order of acceptance", "[H-HIST-1]") {
  EventBus bus("HistoryOrder");
  bus.on<Ping>([](const Ping&) {});
  const auto first = make_event(Ping{1}, {.event_created_at = created_before(1s)});
  const auto second = make_event(Ping{2}, {.event_created_at = created_before(60s)});
  bus.emit(first);
  bus.emit(second);

  const std::vector<BaseEvent> events = bus.event_history().events();
  REQUIRE(events.size() == 2);
  CHECK(events[0] == first);
  CHECK(events[1] == second);
  settled(second);
  CHECK(events[0].event_status() == EventStatus::completed);
  const auto found = bus.event_history().get_event(first.event_id());
  REQUIRE(found);
  CHECK(*found == first);
  CHECK(found->event_status() == EventStatus::completed);
}

TEST_CASE("every bus has a history of its own", "[H-HIST-1]") {
  EventBus one("HistoryOwnOne");
  EventBus two("HistoryOwnTwo");
  const auto event = settled(one.emit(Ping{}));
  CHECK(one.event_history().has_event(event.event_id()));
  CHECK_FALSE(two.event_history().has_event(event.event_id()));
  CHECK(one.event_history() == one.event_history());
  CHECK_FALSE(one.event_history() == two.event_history());
}

TEST_CASE("a status change is visible through the history entry at once", "[H-HIST-1]") {
  Gate gate;
  EventBus bus("HistoryStatus");
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  const auto event = bus.emit(Held{});
  const auto entry = bus.event_history().get_event(event.event_id());
  REQUIRE(entry);
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(entry->event_status() == EventStatus::started);
  gate.open();
  settled(event);
  CHECK(entry->event_status() == EventStatus::completed);
}

TEST_CASE("the limit is 100 and rejects unless told otherwise", "[H-HIST-2]") {
  const EventBus bus("HistoryDefaults");
  CHECK(bus.options().max_history_size == std::optional<std::size_t>(100));
  CHECK_FALSE(bus.options().max_history_drop);
  CHECK(bus.event_history().max_history_size() == std::optional<std::size_t>(100));
  CHECK_FALSE(bus.event_history().max_history_drop());

  const EventBus unbounded("HistoryUnboundedOption", {.max_history_size = std::nullopt, .max_history_drop = true});
  CHECK_FALSE(unbounded.event_history().max_history_size().has_value());
  CHECK_FALSE(unbounded.options().max_history_size.has_value());
  CHECK(unbounded.event_history().max_history_drop());

  const EventBus zero("HistoryZeroOption", {.max_history_size = 0});
  CHECK(zero.event_history().max_history_size() == std::optional<std::size_t>(0));
}

TEST_CASE("an accepted event is in history and queue until it starts and stays in history", "[H-HIST-3]") {
  Gate gate;
  const Domain domain;
  EventBus holder("HistoryHolder", {.event_concurrency = EventConcurrency::global_serial, .domain = domain});
  EventBus bus("HistoryHeldBack", {.event_concurrency = EventConcurrency::global_serial, .domain = domain});
  const OpenAtExit opener(gate);
  holder.on<Held>([&](const Held&) { gate.wait(); });
  bus.on<Ping>([](const Ping&) {});
  holder.emit(Held{});
  REQUIRE(gate.wait_for_arrivals(1));

  const auto event = bus.emit(Ping{});
  CHECK(bus.pending_event_queue() == std::vector<Uuid>{event.event_id()});
  CHECK(bus.event_history().size() == 1);
  CHECK(event.event_status() == EventStatus::pending);
  gate.open();
  settled(event);
  CHECK(bus.pending_event_queue().empty());
  CHECK(bus.event_history().size() == 1);
  CHECK(event.event_status() == EventStatus::completed);
}

TEST_CASE("a started event has left the queue but not the history", "[H-HIST-3]") {
  Gate gate;
  EventBus bus("HistoryStarted");
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  const auto running = bus.emit(Held{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Held{});
  CHECK(bus.pending_event_queue() == std::vector<Uuid>{queued.event_id()});
  CHECK(ids_of(bus.event_history().events()) == std::vector<Uuid>{running.event_id(), queued.event_id()});
}

TEST_CASE("emit never waits for room, whatever the history policy", "[H-HIST-4]") {
  const auto fill = [](std::string name, std::optional<std::size_t> size, bool drop) {
    Gate gate;
    EventBus bus(name, {.max_history_size = size, .max_history_drop = drop});
    const OpenAtExit opener(gate);
    bus.on<Held>([&](const Held&) { gate.wait(); });
    bus.emit(Held{});
    if (!gate.wait_for_arrivals(1)) return std::size_t{0};
    for (int i = 0; i < 2000; ++i) bus.emit(Held{i});
    const std::size_t queued = bus.pending_event_queue().size();
    gate.open();
    return bus.wait_until_idle(patience) ? queued : 0;
  };
  CHECK(fill("HistoryFillUnbounded", std::nullopt, false) == 2000);
  CHECK(fill("HistoryFillDrop", 10, true) == 2000);
  CHECK(fill("HistoryFillZero", 0, false) == 2000);
}

TEST_CASE("both settings can be changed while the bus runs", "[H-HIST-5]") {
  EventBus bus("HistoryChange", {.max_history_size = 2});
  settled(bus.emit(Ping{0}));
  settled(bus.emit(Ping{1}));
  REQUIRE_THROWS_AS(bus.emit(Ping{2}), EventBusHistoryLimitError);

  EventHistory history = bus.event_history();
  history.set_max_history_size(3);
  CHECK(bus.event_history().max_history_size() == std::optional<std::size_t>(3));
  settled(bus.emit(Ping{2}));
  REQUIRE_THROWS_AS(bus.emit(Ping{3}), EventBusHistoryLimitError);

  history.set_max_history_drop(true);
  settled(bus.emit(Ping{3}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(numbers_of<Ping>(bus.event_history().events()) == std::vector<int>{1, 2, 3});

  history.set_max_history_size(1);
  settled(bus.emit(Ping{4}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(numbers_of<Ping>(bus.event_history().events()) == std::vector<int>{4});

  history.set_max_history_drop(false);
  REQUIRE_THROWS_AS(bus.emit(Ping{5}), EventBusHistoryLimitError);
}

TEST_CASE("the status views list the history's events by status in history order", "[H-HIST-6]") {
  Gate gate;
  EventBus bus("HistoryViews");
  const OpenAtExit opener(gate);
  bus.on<Ping>([](const Ping&) {});
  bus.on<Held>([&](const Held&) { gate.wait(); });
  const auto done_1 = bus.emit(Ping{1});
  const auto done_2 = settled(bus.emit(Ping{2}));
  const auto running = bus.emit(Held{3});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued_1 = bus.emit(Ping{4});
  const auto queued_2 = bus.emit(Held{5});

  CHECK(ids_of(bus.events_completed()) == std::vector<Uuid>{done_1.event_id(), done_2.event_id()});
  CHECK(ids_of(bus.events_started()) == std::vector<Uuid>{running.event_id()});
  CHECK(ids_of(bus.events_pending()) == std::vector<Uuid>{queued_1.event_id(), queued_2.event_id()});
  gate.open();
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(bus.events_completed().size() == 5);
  CHECK(bus.events_started().empty());
  CHECK(bus.events_pending().empty());
}

TEST_CASE("an unbounded history neither rejects nor evicts", "[H-HIST-7]") {
  for (const bool drop : {false, true}) {
    EventBus bus(drop ? "HistoryUnboundedDrop" : "HistoryUnbounded",
                 {.max_history_size = std::nullopt, .max_history_drop = drop});
    int handled = 0;
    bus.on<Ping>([&](const Ping&) { ++handled; });
    for (int i = 0; i < 150; ++i) bus.emit(Ping{i});
    REQUIRE(bus.wait_until_idle(patience));
    CHECK(handled == 150);
    CHECK(bus.event_history().size() == 150);
    CHECK(bus.events_completed().size() == 150);
  }
}

}  // namespace

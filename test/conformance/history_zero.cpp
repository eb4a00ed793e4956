// Event history of size 0: only unfinished events are remembered.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
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

TEST_CASE("a history of size zero rejects nothing and forgets what is completed", "[H-HIST-21]") {
  for (const bool drop : {false, true}) {
    Gate gate;
    EventBus bus(drop ? "ZeroDrop" : "ZeroReject", {.max_history_size = 0, .max_history_drop = drop});
    const OpenAtExit opener(gate);
    int handled = 0;
    bus.on<Held>([&](const Held&) {
      gate.wait();
      ++handled;
    });
    for (int i = 0; i < 25; ++i) bus.emit(Held{i});
    REQUIRE(gate.wait_for_arrivals(1));
    CHECK(bus.event_history().size() == 25);
    CHECK(bus.pending_event_queue().size() == 24);
    CHECK(bus.events_started().size() == 1);
    gate.open();
    REQUIRE(bus.wait_until_idle(patience));
    CHECK(handled == 25);
    CHECK(bus.event_history().size() == 0);
    CHECK(bus.pending_event_queue().empty());
  }
}

TEST_CASE("a relay without history keeps a forwarded event until it is completed everywhere", "[H-HIST-22]") {
  Gate gate;
  EventBus target("ZeroTarget", {.max_history_size = 0});
  EventBus relay("ZeroRelay", {.max_history_size = 0});
  EventBus keeper("ZeroKeeper");
  const OpenAtExit opener(gate);
  target.on<Held>([&](const Held&) { gate.wait(); });
  relay.on("*", target.forwarder());
  keeper.on("*", relay.forwarder());
  const auto event = keeper.emit(Held{});
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(relay.wait_until_idle(patience));
  CHECK(relay.event_history().has_event(event.event_id()));
  CHECK(target.event_history().has_event(event.event_id()));
  CHECK(event.event_status() == EventStatus::started);
  gate.open();
  settled(event);
  CHECK_FALSE(relay.event_history().has_event(event.event_id()));
  CHECK_FALSE(target.event_history().has_event(event.event_id()));
  CHECK(keeper.event_history().has_event(event.event_id()));
}

TEST_CASE("the entry is gone before now, wait or an awaited handle returns", "[H-HIST-23]") {
  EventBus bus("ZeroBefore", {.max_history_size = 0});
  EventBus relay("ZeroBeforeRelay", {.max_history_size = 0});
  relay.on("*", bus.forwarder());
  bus.on<Ping>([](const Ping& ping) { return ping.number; });
  int seen = 0;
  const auto present = [&](const Event<Ping>& event) {
    return bus.event_history().has_event(event.event_id()) || relay.event_history().has_event(event.event_id());
  };
  for (int i = 0; i < 200; ++i) {
    if (present(bus.emit(Ping{i}).now())) ++seen;
    if (present(bus.emit(Ping{i}).wait())) ++seen;
    if (present(bus.emit(Ping{i}).wait_async().get())) ++seen;
    if (present(bus.emit(Ping{i}).now_async().get())) ++seen;
    if (present(relay.emit(Ping{i}).wait())) ++seen;
  }
  CHECK(seen == 0);
}

TEST_CASE("drop mode has trimmed to the limit whenever the bus is idle", "[H-HIST-23][H-HIST-17]") {
  EventBus bus("ZeroTrimmed", {.max_history_size = 3, .max_history_drop = true});
  bus.on<Ping>([](const Ping&) {});
  std::size_t largest = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 6; ++i) bus.emit(Ping{i});
    REQUIRE(bus.wait_until_idle(patience));
    largest = std::max(largest, bus.event_history().size());
  }
  CHECK(largest <= 3);
}

TEST_CASE("a past search finds what is in flight and never what is completed", "[H-HIST-24]") {
  Gate gate;
  EventBus bus("ZeroFind", {.max_history_size = 0});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  bus.on<Ping>([](const Ping&) {});
  settled(bus.emit(Ping{1}));
  CHECK_FALSE(bus.find<Ping>().has_value());

  const auto running = bus.emit(Held{1});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(bus.find<Held>() == std::optional(running));
  gate.open();
  settled(running);
  CHECK_FALSE(bus.find<Held>().has_value());
}

TEST_CASE("a future search works without history", "[H-HIST-24]") {
  EventBus bus("ZeroFuture", {.max_history_size = 0});
  bus.on<Ping>([](const Ping&) {});
  auto waiting = bus.find_async<Ping>({.past = false, .future = true});
  CHECK_FALSE(waiting.ready());
  const auto event = bus.emit(Ping{1});
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(event));
  settled(event);
  CHECK_FALSE(bus.find<Ping>().has_value());
}

TEST_CASE("a limit set to zero while running removes completed entries at the next emit", "[H-HIST-25]") {
  EventBus bus("ZeroLater", {.max_history_size = 1});
  bus.on<Ping>([](const Ping&) {});
  const auto first = settled(bus.emit(Ping{1}));
  REQUIRE(bus.event_history().has_event(first.event_id()));
  bus.event_history().set_max_history_size(0);
  const auto second = settled(bus.emit(Ping{2}));
  CHECK_FALSE(bus.event_history().has_event(first.event_id()));
  CHECK_FALSE(bus.event_history().has_event(second.event_id()));
  CHECK(bus.event_history().size() == 0);
}

TEST_CASE("the emit itself prunes, before its event completes", "[H-HIST-25]") {
  Gate gate;
  EventBus bus("ZeroPrune");
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  for (int i = 0; i < 10; ++i) settled(bus.emit(Ping{i}));
  REQUIRE(bus.event_history().size() == 10);
  bus.event_history().set_max_history_size(0);
  const auto held = bus.emit(Held{});
  CHECK(ids_of(bus.event_history().events()) == std::vector<Uuid>{held.event_id()});
}

}  // namespace

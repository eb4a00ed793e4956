// Forwarding: the checks of emit, event_path, loops.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Ping {
  int number = 0;
};
struct Pong {
  int number = 0;
};

using Labels = std::vector<std::string>;

TEST_CASE("a forwarder emits the same event on the other bus", "[H-FWD-1]") {
  EventBus source("ForwardSource");
  EventBus target("ForwardTarget");
  std::optional<BaseEvent> seen;
  target.on("*", [&](const BaseEvent& event) { seen = event; });
  const EventHandler forward = source.on("*", target.forwarder());
  CHECK(forward.handler_name() == "emit");
  const auto event = settled(source.emit(Ping{1}));
  REQUIRE(seen);
  CHECK(*seen == event);
  CHECK(event.event_path() == Labels{source.label(), target.label()});
  CHECK(event.event_results().at(forward.id()).event_value() == std::optional<BaseEvent>(event));
}

TEST_CASE("a forwarder can be registered for one type", "[H-FWD-1]") {
  EventBus source("ForwardTypeSource");
  EventBus target("ForwardTypeTarget");
  source.on<Ping>(target.forwarder());
  const auto ping = settled(source.emit(Ping{1}));
  const auto pong = settled(source.emit(Pong{1}));
  CHECK(ping.event_path() == Labels{source.label(), target.label()});
  CHECK(pong.event_path() == Labels{source.label()});
}

TEST_CASE("any handler may forward, at any point", "[H-FWD-1]") {
  Gate gate;
  EventBus source("ForwardHandSource");
  EventBus target("ForwardHandTarget");
  const OpenAtExit opener(gate);
  std::atomic<int> handled{0};
  target.on<Ping>([&](const Ping&) { ++handled; });
  source.on<Ping>([&](const Event<Ping>& event) {
    gate.wait();
    target.emit(event);
  });
  const auto event = source.emit(Ping{1});
  REQUIRE(gate.wait_for_arrivals(1));
  gate.open();
  settled(event);
  CHECK(handled == 1);
  CHECK(event.event_path() == Labels{source.label(), target.label()});
}

TEST_CASE("a forwarder does not keep its target alive", "[H-FWD-1]") {
  EventBus source("ForwardWeakSource");
  auto gone = std::make_unique<EventBus>("ForwardWeakGone");
  EventBus destroyed("ForwardWeakDestroyed");
  const EventHandler to_gone = source.on("*", gone->forwarder());
  const EventHandler to_destroyed = source.on("*", destroyed.forwarder());
  gone.reset();
  destroyed.destroy();
  const auto event = settled(source.emit(Ping{1}));
  CHECK(event.event_results().at(to_gone.id()).error_type() == "EventBusDestroyedError");
  CHECK(event.event_results().at(to_destroyed.id()).error_type() == "EventBusDestroyedError");
  CHECK(event.event_path() == Labels{source.label()});
  CHECK(event.event_status() == EventStatus::completed);
}

TEST_CASE("a label in the path makes emit a no-op even on a full bus", "[H-FWD-2]") {
  EventBus bus("ForwardNoOp", {.max_history_size = 1});
  std::atomic<int> handled{0};
  bus.on<Ping>([&](const Ping&) { ++handled; });
  const auto event = settled(bus.emit(Ping{1}));
  CHECK(bus.emit(event) == event);
  CHECK(event.event_path() == Labels{bus.label()});
  CHECK(event.event_pending_bus_count() == 0);
  CHECK(bus.event_history().size() == 1);
  CHECK(bus.pending_event_queue().empty());
  REQUIRE(bus.event_history().remove_event(event.event_id()));
  bus.emit(event);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(bus.event_history().size() == 0);
  CHECK(handled == 1);
}

TEST_CASE("a destroyed bus throws before anything else is looked at", "[H-FWD-2]") {
  EventBus bus("ForwardDestroyed");
  const auto event = settled(bus.emit(Ping{1}));
  bus.destroy();
  CHECK_THROWS_AS(bus.emit(event), EventBusDestroyedError);
  CHECK_THROWS_AS(bus.emit(Ping{2}), EventBusDestroyedError);
}

TEST_CASE("an accepted event counts the buses that hold it", "[H-FWD-2]") {
  Gate gate;
  EventBus one("ForwardCountOne");
  EventBus two("ForwardCountTwo");
  const OpenAtExit opener(gate);
  one.on<Ping>([&](const Ping&) { gate.wait(); });
  two.on<Ping>([&](const Ping&) { gate.wait(); });
  const auto event = make_event(Ping{1});
  CHECK(event.event_pending_bus_count() == 0);
  one.emit(event);
  CHECK(event.event_pending_bus_count() == 1);
  two.emit(event);
  CHECK(event.event_pending_bus_count() == 2);
  CHECK(event.event_path() == Labels{one.label(), two.label()});
  CHECK(event.event_bus() == one);
  CHECK(two.event_history().has_event(event.event_id()));
  gate.open();
  settled(event);
  CHECK(event.event_pending_bus_count() == 0);
  CHECK(event.event_results().size() == 2);
}

TEST_CASE("two threads that forward one event to one bus get it accepted once", "[H-FWD-3]") {
  EventBus target("ForwardRaceTarget", {.max_history_size = std::nullopt});
  std::atomic<int> handled{0};
  target.on<Ping>([&](const Ping&) { ++handled; });
  constexpr int rounds = 500;
  std::vector<Event<Ping>> events;
  for (int i = 0; i < rounds; ++i) events.push_back(make_event(Ping{i}));
  std::atomic<int> turn{-1};
  std::vector<std::thread> emitters;
  for (int t = 0; t < 2; ++t) {
    emitters.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        while (turn.load() < i) std::this_thread::yield();
        target.emit(events[static_cast<std::size_t>(i)]);
      }
    });
  }
  for (int i = 0; i < rounds; ++i) {
    turn = i;
    std::this_thread::yield();
  }
  for (auto& thread : emitters) thread.join();
  REQUIRE(target.wait_until_idle(patience));
  CHECK(handled == rounds);
  CHECK(target.event_history().size() == rounds);
  for (const auto& event : events) {
    REQUIRE(event.event_path() == Labels{target.label()});
    REQUIRE(event.event_results().size() == 1);
  }
}

TEST_CASE("the path tells buses of equal names apart", "[H-FWD-4]") {
  EventBus one("SharedName", {.id = "018f8e40-1234-7000-8000-000000001234", .domain = Domain()});
  EventBus two("SharedName", {.id = "018f8e40-1234-7000-8000-00000000abcd", .domain = Domain()});
  one.on("*", two.forwarder());
  std::atomic<int> handled{0};
  two.on<Ping>([&](const Ping&) { ++handled; });
  const auto event = settled(one.emit(Ping{1}));
  CHECK(event.event_path() == Labels{"SharedName#1234", "SharedName#abcd"});
  CHECK(handled == 1);
}

TEST_CASE("forwarding changes neither id, parent nor creation time", "[H-FWD-5]") {
  EventBus one("ForwardSameOne");
  EventBus two("ForwardSameTwo");
  one.on("*", two.forwarder());
  const auto event = make_event(Ping{1});
  const Uuid id = event.event_id();
  const Timestamp created = event.event_created_at();
  one.emit(event);
  settled(event);
  CHECK(event.event_id() == id);
  CHECK(event.event_created_at() == created);
  CHECK_FALSE(event.event_parent_id().has_value());
  CHECK_FALSE(event.event_emitted_by_handler_id().has_value());
  CHECK(event.event_children().empty());
}

TEST_CASE("a completed event can be forwarded, but is not run again", "[H-FWD-6]") {
  EventBus one("ForwardDoneOne");
  EventBus two("ForwardDoneTwo");
  std::atomic<int> handled{0};
  one.on<Ping>([](const Ping&) { return 1; });
  two.on<Ping>([&](const Ping&) { ++handled; });
  const auto event = settled(one.emit(Ping{1}));
  const auto completed_at = event.event_completed_at();
  auto waiting = two.find_async<Ping>({.past = false, .future = true});
  two.emit(event);
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(event));
  REQUIRE(two.wait_until_idle(patience));
  CHECK(event.event_path() == Labels{one.label(), two.label()});
  CHECK(two.event_history().has_event(event.event_id()));
  CHECK(handled == 0);
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_completed_at() == completed_at);
  CHECK(event.event_results().size() == 1);
  CHECK(event.event_pending_bus_count() == 0);
}

TEST_CASE("a ring of buses handles an event once each, with six completed results", "[H-FWD-7][H-FWD-8]") {
  EventBus a("RingA");
  EventBus b("RingB");
  EventBus c("RingC");
  std::atomic<int> handled_a{0};
  std::atomic<int> handled_b{0};
  std::atomic<int> handled_c{0};
  a.on<Ping>([&](const Ping&) { ++handled_a; });
  b.on<Ping>([&](const Ping&) { ++handled_b; });
  c.on<Ping>([&](const Ping&) { ++handled_c; });
  a.on("*", b.forwarder());
  b.on("*", c.forwarder());
  c.on("*", a.forwarder());

  const auto event = settled(a.emit(Ping{1}));
  for (const auto* bus : {&a, &b, &c}) {
    REQUIRE(bus->wait_until_idle(patience));
    CHECK(bus->is_idle_and_queue_empty());
    CHECK(bus->pending_event_queue().empty());
  }
  CHECK(event.event_path() == Labels{a.label(), b.label(), c.label()});
  CHECK(handled_a == 1);
  CHECK(handled_b == 1);
  CHECK(handled_c == 1);
  const EventResults results = event.event_results();
  CHECK(results.size() == 6);
  for (const auto& result : results) CHECK(result.status() == EventResultStatus::completed);

  const auto second = settled(b.emit(Ping{2}));
  CHECK(second.event_path() == Labels{b.label(), c.label(), a.label()});
  CHECK(second.event_results().size() == 6);
  CHECK(handled_a == 2);
  CHECK(handled_b == 2);
  CHECK(handled_c == 2);
}

TEST_CASE("two buses that forward to each other handle an event once each", "[H-FWD-7]") {
  EventBus a("PairA");
  EventBus b("PairB");
  std::atomic<int> handled{0};
  a.on<Ping>([&](const Ping&) { ++handled; });
  b.on<Ping>([&](const Ping&) { ++handled; });
  a.on("*", b.forwarder());
  b.on("*", a.forwarder());
  const auto event = settled(a.emit(Ping{1}));
  REQUIRE(a.wait_until_idle(patience));
  REQUIRE(b.wait_until_idle(patience));
  CHECK(handled == 2);
  CHECK(event.event_path() == Labels{a.label(), b.label()});
}

TEST_CASE("a bus that forwards to itself handles an event once", "[H-FWD-8]") {
  EventBus bus("SelfForward");
  std::atomic<int> handled{0};
  bus.on<Ping>([&](const Ping&) { ++handled; });
  const EventHandler forward = bus.on("*", bus.forwarder());
  const auto event = settled(bus.emit(Ping{1}));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(handled == 1);
  CHECK(event.event_results().at(forward.id()).status() == EventResultStatus::completed);
  CHECK(event.event_path() == Labels{bus.label()});
}

}  // namespace

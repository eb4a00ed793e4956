// Event history, reject mode: the limit, its error, and that a rejected emit changes nothing.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <functional>
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
struct Held {
  int number = 0;
};
struct Parent {};
struct Child {
  int number = 0;
};

TEST_CASE("completed entries count: with all defaults the 101st emit throws", "[H-HIST-8]") {
  EventBus bus("RejectDefaults");
  int handled = 0;
  bus.on<Ping>([&](const Ping&) { ++handled; });
  for (int i = 0; i < 100; ++i) bus.emit(Ping{i});
  REQUIRE(bus.wait_until_idle(patience));
  REQUIRE(bus.events_completed().size() == 100);
  REQUIRE_THROWS_AS(bus.emit(Ping{100}), EventBusHistoryLimitError);
  CHECK(bus.event_history().size() == 100);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(handled == 100);
}

TEST_CASE("a third emit on a history of two throws and disturbs nothing", "[H-HIST-9]") {
  EventBus bus("RejectTwo", {.max_history_size = 2});
  const auto first = settled(bus.emit(Ping{1}));
  const auto second = settled(bus.emit(Ping{2}));
  REQUIRE_THROWS_AS(bus.emit(Ping{3}), EventBusHistoryLimitError);
  CHECK(bus.event_history().size() == 2);
  CHECK(bus.pending_event_queue().empty());
  for (const auto& kept : {first, second}) {
    const auto found = bus.find<Ping>({.where = [&](const Event<Ping>& each) { return each == kept; }});
    REQUIRE(found);
    CHECK(*found == kept);
  }
}

TEST_CASE("with a blocked handler exactly the first hundred of two hundred are accepted", "[H-HIST-9]") {
  Gate gate;
  EventBus bus("RejectBlocked", {.max_history_size = 100});
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  int accepted = 0;
  int rejected = 0;
  for (int i = 0; i < 200; ++i) {
    try {
      bus.emit(Held{i});
      ++accepted;
    } catch (const EventBusHistoryLimitError&) {
      ++rejected;
    }
  }
  CHECK(accepted == 100);
  CHECK(rejected == 100);
  CHECK(numbers_of<Held>(bus.event_history().events()).back() == 99);
}

TEST_CASE("the rejection says which bus, which event and which limit", "[H-HIST-10]") {
  EventBus bus("RejectMessage", {.max_history_size = 1});
  settled(bus.emit(Ping{1}));
  try {
    bus.emit(Ping{2});
    FAIL("accepted");
  } catch (const EventBusHistoryLimitError& error) {
    CHECK(std::string(error.what()) ==
          bus.label() +
              ".emit(Ping) rejected: history limit reached (1/1); set event_history.max_history_drop=true to "
              "drop old history instead.");
    CHECK(error.eventbus_label() == bus.label());
    CHECK(error.event_type() == "Ping");
    CHECK(error.size() == 1);
    CHECK(error.limit() == 1);
    CHECK(error.type_name() == "EventBusHistoryLimitError");
  }
  CHECK_THROWS_AS(bus.emit(Ping{2}), Error);
}

TEST_CASE("the size in the message is the real one when the limit was lowered", "[H-HIST-10][H-HIST-5]") {
  EventBus bus("RejectLowered", {.max_history_size = 5});
  for (int i = 0; i < 3; ++i) settled(bus.emit(Ping{i}));
  bus.event_history().set_max_history_size(2);
  REQUIRE_THROWS_WITH(bus.emit(Ping{3}), abxbus::test::contains("history limit reached (3/2)"));
}

TEST_CASE("a rejected emit leaves event and bus as they were, and works later", "[H-HIST-11]") {
  EventBus bus("RejectNothing", {.max_history_size = 1});
  int handled = 0;
  bus.on<Ping>([&](const Ping&) { ++handled; });
  const auto old = settled(bus.emit(Ping{1}));
  auto waiting = bus.find_async<Ping>({.past = false, .future = true});

  const auto event = make_event(Ping{2});
  const Uuid id = event.event_id();
  REQUIRE_THROWS_AS(bus.emit(event), EventBusHistoryLimitError);
  CHECK(event.event_id() == id);
  CHECK(event.event_path().empty());
  CHECK(event.event_pending_bus_count() == 0);
  CHECK_FALSE(event.event_parent_id().has_value());
  CHECK_FALSE(event.event_emitted_by_handler_id().has_value());
  CHECK(event.event_status() == EventStatus::pending);
  CHECK(event.event_results().empty());
  CHECK_THROWS_AS(event.event_bus(), ValidationError);
  CHECK(bus.event_history().size() == 1);
  CHECK(bus.pending_event_queue().empty());
  CHECK_FALSE(waiting.ready());
  CHECK(bus.find_waiter_count() == 1);

  REQUIRE(bus.event_history().remove_event(old.event_id()));
  CHECK(bus.emit(event) == event);
  settled(event);
  CHECK(handled == 2);
  CHECK(event.event_path() == std::vector<std::string>{bus.label()});
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(event));
}

TEST_CASE("a child rejected inside a handler gets no link and can be emitted later", "[H-HIST-11][H-HIST-12]") {
  Recorder notes;
  EventBus bus("RejectChild", {.max_history_size = 1});
  const auto child = make_event(Child{7});
  bus.on<Parent>([&](const Event<Parent>& event) {
    try {
      event.emit(child);
      notes.add("accepted");
    } catch (const EventBusHistoryLimitError&) {
      notes.add("rejected");
    }
  });
  const auto parent = settled(bus.emit(Parent{}));
  CHECK(notes.notes() == std::vector<std::string>{"rejected"});
  CHECK(child.event_path().empty());
  CHECK(child.event_pending_bus_count() == 0);
  CHECK_FALSE(child.event_parent_id().has_value());
  CHECK_FALSE(child.event_emitted_by_handler_id().has_value());
  CHECK_FALSE(child.event_blocks_parent_completion());
  CHECK(parent.event_children().empty());
  REQUIRE(parent.event_results().size() == 1);
  CHECK(parent.event_results()[0].status() == EventResultStatus::completed);

  bus.event_history().set_max_history_size(std::nullopt);
  bus.emit(child);
  settled(child);
  CHECK(child.event_status() == EventStatus::completed);
}

TEST_CASE("a rejection that leaves the handler becomes its error", "[H-HIST-12]") {
  EventBus bus("RejectUncaught", {.max_history_size = 1});
  bus.on<Parent>([&](const Event<Parent>& event) { event.emit(Child{1}); });
  const auto parent = settled(bus.emit(Parent{}));
  const EventResults results = parent.event_results();
  REQUIRE(results.size() == 1);
  CHECK(results[0].status() == EventResultStatus::error);
  CHECK(results[0].error_type() == "EventBusHistoryLimitError");
  CHECK_THAT(results[0].error_message(), abxbus::test::contains(".emit(Child) rejected: history limit reached (1/1)"));
  CHECK(parent.event_status() == EventStatus::completed);
}

TEST_CASE("forwarding to a full bus fails that handler only", "[H-HIST-12]") {
  EventBus source("RejectSource");
  EventBus target("RejectTarget", {.max_history_size = 1});
  settled(target.emit(Child{}));
  int handled = 0;
  const EventHandler forward = source.on("*", target.forwarder());
  source.on<Ping>([&](const Ping&) { ++handled; });
  const auto event = settled(source.emit(Ping{}));

  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_path() == std::vector<std::string>{source.label()});
  CHECK(handled == 1);
  const EventResults results = event.event_results();
  REQUIRE(results.size() == 2);
  CHECK(results.at(forward.id()).status() == EventResultStatus::error);
  CHECK(results.at(forward.id()).error_type() == "EventBusHistoryLimitError");
  CHECK_FALSE(target.event_history().has_event(event.event_id()));
}

TEST_CASE("room is made by removing, clearing, raising the limit or dropping", "[H-HIST-13]") {
  const auto makes_room = [](std::string name, const std::function<void(EventHistory&, const Uuid&)>& make_room) {
    EventBus bus(name, {.max_history_size = 1});
    const auto old = settled(bus.emit(Ping{1}));
    bool full = false;
    try {
      bus.emit(Ping{2});
    } catch (const EventBusHistoryLimitError&) {
      full = true;
    }
    EventHistory history = bus.event_history();
    make_room(history, old.event_id());
    return full && settled(bus.emit(Ping{3})).event_status() == EventStatus::completed;
  };
  CHECK(makes_room("RoomRemove", [](EventHistory& history, const Uuid& id) { history.remove_event(id); }));
  CHECK(makes_room("RoomClear", [](EventHistory& history, const Uuid&) { history.clear(); }));
  CHECK(makes_room("RoomRaise", [](EventHistory& history, const Uuid&) { history.set_max_history_size(2); }));
  CHECK(makes_room("RoomUnlimit", [](EventHistory& history, const Uuid&) { history.set_max_history_size({}); }));
  CHECK(makes_room("RoomDrop", [](EventHistory& history, const Uuid&) { history.set_max_history_drop(true); }));
}

TEST_CASE("concurrent emits never get past the limit", "[H-HIST-14]") {
  constexpr int threads = 8;
  constexpr int each = 60;
  for (int round = 0; round < 5; ++round) {
    EventBus bus("RejectRace", {.max_history_size = 100});
    bus.on<Ping>([](const Ping&) {});
    std::atomic<int> accepted{0};
    std::atomic<int> rejected{0};
    Gate start;
    std::vector<std::thread> emitters;
    for (int i = 0; i < threads; ++i) {
      emitters.emplace_back([&] {
        start.wait();
        for (int n = 0; n < each; ++n) {
          try {
            bus.emit(Ping{n});
            ++accepted;
          } catch (const EventBusHistoryLimitError&) {
            ++rejected;
          }
        }
      });
    }
    start.open();
    for (auto& thread : emitters) thread.join();
    CHECK(accepted == 100);
    CHECK(rejected == threads * each - 100);
    CHECK(bus.event_history().size() == 100);
    REQUIRE(bus.wait_until_idle(patience));
  }
}

}  // namespace

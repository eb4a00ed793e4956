// The history object: its operations, alone and on a bus, and that callbacks run without any lock.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
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
struct Held {
  int number = 0;
};

/// Completed events, made by a bus of their own.
std::vector<Event<Ping>> completed_events(std::string bus_name, int count) {
  EventBus bus(bus_name, {.max_history_size = std::nullopt});
  std::vector<Event<Ping>> events;
  for (int i = 0; i < count; ++i) events.push_back(bus.emit(Ping{i}));
  for (const auto& event : events) settled(event);
  return events;
}

TEST_CASE("a history works without a bus", "[H-HIST-26]") {
  EventHistory history;
  CHECK(history.max_history_size() == std::optional<std::size_t>(100));
  CHECK_FALSE(history.max_history_drop());
  CHECK(history.size() == 0);

  const auto one = make_event(Ping{1});
  const auto two = make_event(Ping{2});
  history.add_event(one);
  history.add_event(two);
  CHECK(history.size() == 2);
  CHECK(history.has_event(one.event_id()));
  CHECK(history.get_event(one.event_id()) == std::optional<BaseEvent>(one));
  CHECK_FALSE(history.has_event(Uuid::v7()));
  CHECK_FALSE(history.get_event(Uuid::v7()).has_value());
  CHECK(ids_of(history.events()) == std::vector<Uuid>{one.event_id(), two.event_id()});
  CHECK(history.remove_event(one.event_id()));
  CHECK_FALSE(history.remove_event(one.event_id()));
  CHECK_FALSE(history.has_event(one.event_id()));
  CHECK(history.size() == 1);
  history.clear();
  CHECK(history.size() == 0);
  CHECK(history.events().empty());
}

TEST_CASE("settings of a history of one's own", "[H-HIST-26]") {
  EventHistory history(std::nullopt, true);
  CHECK_FALSE(history.max_history_size().has_value());
  CHECK(history.max_history_drop());
  history.set_max_history_size(7);
  history.set_max_history_drop(false);
  const EventHistory same = history;
  CHECK(same.max_history_size() == std::optional<std::size_t>(7));
  CHECK_FALSE(same.max_history_drop());
  CHECK(same == history);
  CHECK_FALSE(same == EventHistory());
}

TEST_CASE("adding does not enforce the limit", "[H-HIST-27]") {
  EventHistory history(2, true);
  for (int i = 0; i < 5; ++i) history.add_event(make_event(Ping{i}));
  CHECK(history.size() == 5);
}

TEST_CASE("adding an id that is there replaces the object in its place", "[H-HIST-27]") {
  EventHistory history;
  const Uuid id = Uuid::v7();
  history.add_event(make_event(Ping{1}));
  history.add_event(make_event(Ping{2}, {.event_id = id}));
  history.add_event(make_event(Ping{3}));
  const auto replacement = make_event(Ping{20}, {.event_id = id});
  history.add_event(replacement);
  CHECK(history.size() == 3);
  CHECK(numbers_of<Ping>(history.events()) == std::vector<int>{1, 20, 3});
  CHECK(history.get_event(id) == std::optional<BaseEvent>(replacement));
}

TEST_CASE("an event added to a bus's history is remembered, not processed", "[H-HIST-27]") {
  EventBus bus("ObjectAdded");
  std::atomic<int> handled{0};
  bus.on<Ping>([&](const Ping&) { ++handled; });
  const auto event = make_event(Ping{1});
  bus.event_history().add_event(event);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(handled == 0);
  CHECK(event.event_status() == EventStatus::pending);
  CHECK(bus.find<Ping>() == std::optional(event));
}

TEST_CASE("trimming an unbounded history removes nothing", "[H-HIST-28]") {
  for (const bool drop : {false, true}) {
    EventHistory history(std::nullopt, drop);
    for (const auto& event : completed_events(drop ? "TrimUnboundedDrop" : "TrimUnbounded", 5))
      history.add_event(event);
    CHECK(history.trim_event_history() == 0);
    CHECK(history.size() == 5);
  }
}

TEST_CASE("trimming a history of size zero removes every completed entry", "[H-HIST-28]") {
  for (const bool drop : {false, true}) {
    EventHistory history(0, drop);
    const auto pending = make_event(Ping{100});
    const auto events = completed_events(drop ? "TrimZeroDrop" : "TrimZero", 3);
    history.add_event(events[0]);
    history.add_event(pending);
    history.add_event(events[1]);
    history.add_event(events[2]);
    std::vector<int> removed;
    CHECK(history.trim_event_history(
              [&](const BaseEvent& event) { removed.push_back(event.payload_as<Ping>().number); }) == 3);
    CHECK(removed == std::vector<int>{0, 1, 2});
    CHECK(ids_of(history.events()) == std::vector<Uuid>{pending.event_id()});
  }
}

TEST_CASE("trimming does nothing in reject mode or within the limit", "[H-HIST-28]") {
  const auto events = completed_events("TrimNothing", 4);
  EventHistory rejecting(2, false);
  EventHistory roomy(4, true);
  for (const auto& event : events) {
    rejecting.add_event(event);
    roomy.add_event(event);
  }
  CHECK(rejecting.trim_event_history() == 0);
  CHECK(rejecting.size() == 4);
  CHECK(roomy.trim_event_history() == 0);
  CHECK(roomy.size() == 4);
}

TEST_CASE("trimming in drop mode: completed entries first, then by age, each reported after its removal",
          "[H-HIST-28][H-HIST-15]") {
  EventHistory history(2, true);
  const auto events = completed_events("TrimDrop", 2);
  const auto pending_1 = make_event(Ping{101});
  const auto pending_2 = make_event(Ping{102});
  const auto pending_3 = make_event(Ping{103});
  history.add_event(pending_1);
  history.add_event(events[0]);
  history.add_event(pending_2);
  history.add_event(events[1]);
  history.add_event(pending_3);
  std::vector<int> removed;
  int still_there = 0;
  const std::size_t count = history.trim_event_history([&](const BaseEvent& event) {
    removed.push_back(event.payload_as<Ping>().number);
    if (history.has_event(event.event_id())) ++still_there;
  });
  CHECK(count == 3);
  CHECK(removed == std::vector<int>{0, 1, 101});
  CHECK(still_there == 0);
  CHECK(ids_of(history.events()) == std::vector<Uuid>{pending_2.event_id(), pending_3.event_id()});
}

TEST_CASE("the warning of a trim names the owner", "[H-HIST-28][H-HIST-18]") {
  const CapturedLog log;
  EventHistory named(1, true);
  EventHistory unnamed(1, true);
  for (int i = 0; i < 2; ++i) {
    named.add_event(make_event(Ping{i}));
    unnamed.add_event(make_event(Ping{i}));
  }
  CHECK(named.trim_event_history({}, "Archive#0042") == 1);
  CHECK(unnamed.trim_event_history() == 1);
  CHECK(log.wait_for("Bus Archive#0042 has exceeded max_history_size=1 and is dropping oldest history entries"));
  CHECK(log.wait_for("Bus EventBus has exceeded max_history_size=1 and is dropping oldest history entries"));
}

TEST_CASE("find on a history of one's own: newest first, future ignored", "[H-HIST-29]") {
  EventHistory history;
  const auto old = make_event(Ping{1}, {.event_created_at = created_before(30s)});
  const auto recent = make_event(Ping{2});
  history.add_event(old);
  history.add_event(recent);
  history.add_event(make_event(Pong{3}));

  CHECK(history.find("Ping") == std::optional<BaseEvent>(recent));
  CHECK(history.find("*")->event_type() == "Pong");
  CHECK(history.find("Ping", {.where = [](const BaseEvent& each) { return each.payload_as<Ping>().number == 1; }}) ==
        std::optional<BaseEvent>(old));
  CHECK_FALSE(history.find("Ping", {.past = false}).has_value());
  CHECK_FALSE(history
                  .find("Ping", {.past = 10s,
                                 .where = [](const BaseEvent& each) { return each.payload_as<Ping>().number == 1; }})
                  .has_value());

  const auto start = Clock::now();
  CHECK_FALSE(history.find("Missing", {.future = true}).has_value());
  CHECK_FALSE(history.find("Missing", {.past = false, .future = 10s}).has_value());
  CHECK(seconds_since(start) < 5.0);
}

TEST_CASE("destroy clears the history or keeps it, as asked", "[H-HIST-30]") {
  EventBus cleared("ObjectCleared");
  settled(cleared.emit(Ping{}));
  cleared.destroy();
  CHECK(cleared.event_history().size() == 0);

  EventBus kept("ObjectKept");
  const auto event = settled(kept.emit(Ping{}));
  kept.destroy(false);
  CHECK(kept.event_history().has_event(event.event_id()));
  CHECK(kept.events_completed().size() == 1);
  kept.destroy(true);
  CHECK(kept.event_history().size() == 0);
}

TEST_CASE("a history handle may outlive its bus", "[H-HIST-32]") {
  std::optional<EventHistory> history;
  {
    EventBus bus("ObjectOutlived");
    settled(bus.emit(Ping{}));
    history = bus.event_history();
  }
  CHECK(history->size() == 0);
  history->add_event(make_event(Ping{1}));
  history->clear();
}

TEST_CASE("callbacks may call back into the bus", "[H-HIST-32]") {
  EventBus bus("ObjectCallbacks", {.max_history_size = std::nullopt});
  for (int i = 0; i < 3; ++i) settled(bus.emit(Ping{i}));
  EventHistory history = bus.event_history();

  std::vector<int> seen;
  const auto found = bus.find<Ping>({.where = [&](const Event<Ping>& each) {
    seen.push_back(each->number);
    bus.emit(Pong{each->number});
    history.remove_event(each.event_id());
    return false;
  }});
  CHECK_FALSE(found.has_value());
  CHECK(seen == std::vector<int>{2, 1, 0});
  CHECK_FALSE(bus.find<Ping>().has_value());
  REQUIRE(bus.wait_until_idle(patience));

  history.set_max_history_size(1);
  history.set_max_history_drop(true);
  int removed = 0;
  int found_inside = 0;
  const std::size_t count = history.trim_event_history([&](const BaseEvent& event) {
    ++removed;
    if (bus.find("*")) ++found_inside;
    history.remove_event(event.event_id());
  });
  CHECK(count == 2);
  CHECK(removed == 2);
  CHECK(found_inside == 2);
  CHECK(bus.event_history().size() == 1);
}

TEST_CASE("iteration is a consistent snapshot while others emit, remove and trim", "[H-HIST-32]") {
  EventBus bus("ObjectSnapshot", {.max_history_size = 50, .max_history_drop = true});
  bus.on<Ping>([](const Ping&) {});
  std::atomic<bool> stop{false};
  std::atomic<int> disorder{0};
  std::atomic<int> snapshots{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        int last = -1;
        for (const auto& event : bus.event_history().events()) {
          const int number = event.payload_as<Ping>().number;
          if (number <= last) ++disorder;
          last = number;
        }
        bus.find<Ping>({.where = [](const Event<Ping>& each) { return each->number < 0; }});
        ++snapshots;
      }
    });
  }
  std::thread remover([&] {
    while (!stop) {
      if (const auto newest = bus.find<Ping>()) bus.event_history().remove_event(newest->event_id());
      bus.event_history().trim_event_history();
    }
  });
  int emitted = 0;
  const auto start = Clock::now();
  while (emitted < 20000 || (snapshots < 20 && Clock::now() - start < patience)) {
    for (int i = 0; i < 500; ++i) bus.emit(Ping{emitted++});
    bus.wait_until_idle(patience);
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  remover.join();
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(disorder == 0);
  CHECK(snapshots >= 20);
  CHECK(bus.event_history().size() <= 50);
}

}  // namespace

// The pinned examples of the queue: Q-14.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Notes = std::vector<std::string>;

struct QueueEvent {
  int number = 0;
};
struct SlowEvent {};
struct FastEvent {};

Notes numbers(int count) {
  Notes texts;
  for (int i = 0; i < count; ++i) texts.push_back(std::to_string(i));
  return texts;
}

TEST_CASE("slow and quick events alternating start and end in order", "[Q-14][Q-1]") {
  Recorder starts;
  Recorder ends;
  EventBus bus("TwentyEvents");
  bus.on<QueueEvent>([&](const QueueEvent& event) {
    starts.add(std::to_string(event.number));
    std::this_thread::sleep_for(event.number % 2 == 0 ? 50ms : 10ms);
    ends.add(std::to_string(event.number));
  });
  for (int i = 0; i < 20; ++i) bus.emit(QueueEvent{i});
  CHECK(bus.wait_until_idle());
  CHECK(starts.notes() == numbers(20));
  CHECK(ends.notes() == numbers(20));
}

TEST_CASE("a slow event then a fast one", "[Q-14][Q-1]") {
  Recorder order;
  EventBus bus("SlowThenFast");
  bus.on<SlowEvent>([&](const SlowEvent&) {
    order.add("start:slow");
    std::this_thread::sleep_for(40ms);
    order.add("end:slow");
  });
  bus.on<FastEvent>([&](const FastEvent&) {
    order.add("start:fast");
    std::this_thread::sleep_for(1ms);
    order.add("end:fast");
  });
  const auto slow = bus.emit(SlowEvent{});
  const auto fast = bus.emit(FastEvent{});
  fast.wait();
  CHECK(order.notes() == Notes{"start:slow", "end:slow", "start:fast", "end:fast"});
  CHECK(*slow.event_completed_at() <= *fast.event_started_at());
}

TEST_CASE("two bus-serial buses whose handlers wait for each other", "[Q-14][Q-2]") {
  Gate a_started;
  Gate b_started;
  Meeting in_flight;
  EventBus a("MutualA");
  EventBus b("MutualB");
  const OpenAtExit open(a_started, b_started);
  a.on<QueueEvent>([&](const QueueEvent&) {
    in_flight.enter();
    a_started.open();
    const bool met = b_started.wait();
    in_flight.leave();
    return met;
  });
  b.on<QueueEvent>([&](const QueueEvent&) {
    in_flight.enter();
    b_started.open();
    const bool met = a_started.wait();
    in_flight.leave();
    return met;
  });
  const auto on_a = a.emit(QueueEvent{1});
  const auto on_b = b.emit(QueueEvent{2});
  CHECK(on_a.wait().event_result<bool>() == true);
  CHECK(on_b.wait().event_result<bool>() == true);
  CHECK(in_flight.max() == 2);
}

TEST_CASE("a handler forwards each event to a second bus", "[Q-14]") {
  Recorder seen_a;
  Recorder seen_b;
  EventBus a("ForwardsInBody");
  EventBus b("ForwardsInBodyTarget");
  a.on<QueueEvent>([&](const Event<QueueEvent>& event) {
    seen_a.add(std::to_string(event->number));
    b.emit(event);
  });
  b.on<QueueEvent>([&](const QueueEvent& event) { seen_b.add(std::to_string(event.number)); });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 5; ++i) events.push_back(a.emit(QueueEvent{i}));
  for (const BaseEvent& event : events) event.wait();
  CHECK(seen_a.notes() == numbers(5));
  CHECK(seen_b.notes() == numbers(5));
  CHECK(b.event_history().events() == events);
  for (const BaseEvent& event : events) {
    const EventResults results = event.event_results();
    REQUIRE(results.size() == 2);
    CHECK(results[0].eventbus_id() == a.id());
    CHECK(results[1].eventbus_id() == b.id());
    for (const EventResult& result : results) CHECK(result.status() == EventResultStatus::completed);
  }
}

TEST_CASE("a chain of three buses keeps the order", "[Q-14]") {
  Recorder seen;
  EventBus a("ChainA");
  EventBus b("ChainB");
  EventBus c("ChainC");
  a.on("*", b.forwarder());
  b.on("*", c.forwarder());
  c.on<QueueEvent>([&](const QueueEvent& event) { seen.add(std::to_string(event.number)); });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 6; ++i) events.push_back(a.emit(QueueEvent{i}));
  for (const BaseEvent& event : events) event.wait();
  CHECK(seen.notes() == numbers(6));
  CHECK(events[5].event_path() == Notes{a.label(), b.label(), c.label()});
}

TEST_CASE("a burst of a hundred events", "[Q-14]") {
  EventBus bus("Burst", {.max_history_size = std::nullopt});
  bus.on<QueueEvent>([](const QueueEvent& event) { return event.number; });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 100; ++i) events.push_back(bus.emit(QueueEvent{i}));
  CHECK(bus.wait_until_idle());
  int completed = 0;
  for (const BaseEvent& event : events) completed += event.event_status() == EventStatus::completed ? 1 : 0;
  CHECK(completed == 100);
  CHECK(bus.event_history().size() == 100);
  CHECK(events[99].event_results()[0].result_as<int>() == 99);
}

}  // namespace

// Serial-mode events: order, locks, clocks.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Notes = std::vector<std::string>;

struct TaskEvent {
  int number = 0;
};
struct HoldEvent {};
struct ProbeEvent {};
struct FailEvent {};
struct SideEvent {};

constexpr auto bus_serial = EventConcurrency::bus_serial;
constexpr auto global_serial = EventConcurrency::global_serial;
constexpr auto parallel = EventConcurrency::parallel;

/// Lets a parallel event run through: whatever could have started before has had its chance.
void run_probe(const EventBusRef& bus) {
  for (int i = 0; i < 3; ++i) bus.emit(ProbeEvent{}, {.event_concurrency = parallel}).wait();
}

TEST_CASE("one serial run at a time in acceptance order, whatever the mix of serial modes", "[Q-1]") {
  Recorder order;
  Meeting meeting;
  EventBus bus("SerialMix", {.domain = Domain()});
  bus.on<TaskEvent>([&](const TaskEvent& event) {
    order.add("start" + std::to_string(event.number));
    meeting.meet(2, std::chrono::milliseconds(event.number % 3 * 3));
    order.add("end" + std::to_string(event.number));
  });
  std::vector<BaseEvent> events;
  Notes expected;
  for (int i = 0; i < 12; ++i) {
    events.push_back(bus.emit(TaskEvent{i}, {.event_concurrency = i % 4 < 2 ? bus_serial : global_serial}));
    expected.push_back("start" + std::to_string(i));
    expected.push_back("end" + std::to_string(i));
  }
  for (const BaseEvent& event : events) event.wait();
  CHECK(order.notes() == expected);
  CHECK(meeting.max() == 1);
  for (std::size_t i = 1; i < events.size(); ++i) {
    CHECK(*events[i - 1].event_completed_at() <= *events[i].event_started_at());
  }
  CHECK(bus.events_completed() == events);
}

TEST_CASE("bus-serial buses run concurrently, each one run at a time", "[Q-2]") {
  Meeting together;
  Meeting in_a;
  Meeting in_b;
  EventBus a("BusSerialA");
  EventBus b("BusSerialB");
  a.on<TaskEvent>([&](const TaskEvent&) {
    in_a.enter();
    const bool met = together.meet(2);
    in_a.meet(3, 2ms);
    in_a.leave();
    return met;
  });
  b.on<TaskEvent>([&](const TaskEvent&) {
    in_b.enter();
    const bool met = together.meet(2);
    in_b.meet(3, 2ms);
    in_b.leave();
    return met;
  });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(a.emit(TaskEvent{i}));
    events.push_back(b.emit(TaskEvent{i}));
  }
  for (const BaseEvent& event : events) CHECK(event.wait().event_result<bool>() == true);
  CHECK(together.max() == 2);
  // Each handler enters twice; a third place would be another run.
  CHECK(in_a.max() == 2);
  CHECK(in_b.max() == 2);
}

TEST_CASE("one global-serial run in the domain, whose handlers may overlap", "[Q-3]") {
  const Domain domain;
  const EventBusOptions options{.event_concurrency = global_serial,
                                .event_handler_concurrency = EventHandlerConcurrency::parallel,
                                .domain = domain};
  Meeting pair;
  Meeting crowd;
  Recorder order_a;
  Recorder order_b;
  EventBus a("GlobalA", options);
  EventBus b("GlobalB", options);
  const auto handler = [&](Recorder& order) {
    return [&pair, &crowd, &order](const TaskEvent& event) {
      order.add(std::to_string(event.number));
      pair.meet(2);
      crowd.meet(3, 6ms);
    };
  };
  for (int i = 0; i < 2; ++i) {
    a.on<TaskEvent>(handler(order_a));
    b.on<TaskEvent>(handler(order_b));
  }
  std::vector<BaseEvent> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(a.emit(TaskEvent{i}));
    events.push_back(b.emit(TaskEvent{i}));
  }
  for (const BaseEvent& event : events) event.wait();
  CHECK(pair.max() == 2);
  CHECK(crowd.max() <= 2);
  const Notes expected{"0", "0", "1", "1", "2", "2", "3", "3"};
  CHECK(order_a.notes() == expected);
  CHECK(order_b.notes() == expected);
}

TEST_CASE("an event that waits for its lock holds back the serial events behind it", "[Q-5][Q-11]") {
  const Domain domain;
  Gate gate;
  Recorder order;
  EventBus holder("HoldsGlobal", {.event_concurrency = global_serial, .domain = domain});
  EventBus bus("WaitsForGlobal", {.domain = domain});
  const OpenAtExit open(gate);
  holder.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); });
  bus.on<TaskEvent>([&](const TaskEvent& event) { order.add(std::to_string(event.number)); });
  holder.emit(HoldEvent{});
  REQUIRE(gate.wait_for_arrivals(1));

  const auto head = bus.emit(TaskEvent{1}, {.event_concurrency = global_serial});
  const auto behind = bus.emit(TaskEvent{2}, {.event_concurrency = bus_serial});
  const auto passing = bus.emit(TaskEvent{3}, {.event_concurrency = parallel});
  passing.wait();
  run_probe(bus);
  CHECK(order.notes() == Notes{"3"});
  CHECK(head.event_status() == EventStatus::pending);
  CHECK(behind.event_status() == EventStatus::pending);
  CHECK(bus.pending_event_queue() == std::vector<Uuid>{head.event_id(), behind.event_id()});

  gate.open();
  behind.wait();
  CHECK(order.notes() == Notes{"3", "1", "2"});
}

TEST_CASE("the lock is held until every handler of the run is settled", "[Q-6]") {
  Gate gate;
  Recorder order;
  EventBus bus("HeldForRun", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  const OpenAtExit open(gate);
  bus.on<HoldEvent>([&](const HoldEvent&) { order.add("quick"); });
  bus.on<HoldEvent>([&](const HoldEvent&) {
    gate.wait();
    order.add("slow");
  });
  bus.on<TaskEvent>([&](const TaskEvent&) { order.add("next"); });
  const auto held = bus.emit(HoldEvent{});
  const auto next = bus.emit(TaskEvent{1});
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(order.wait_for_size(1));
  run_probe(bus);
  CHECK(order.notes() == Notes{"quick"});
  CHECK(next.event_status() == EventStatus::pending);
  gate.open();
  next.wait();
  CHECK(order.notes() == Notes{"quick", "slow", "next"});
  CHECK(*held.event_completed_at() <= *next.event_started_at());
}

TEST_CASE("the lock does not cover unawaited children", "[Q-6]") {
  Gate gate;
  std::optional<BaseEvent> child;
  EventBus bus("LockWithoutChildren");
  EventBus side("LockWithoutChildrenSide");
  const OpenAtExit open(gate);
  side.on<SideEvent>([&](const SideEvent&) { gate.wait(); });
  bus.on<HoldEvent>([&](const HoldEvent&) { child = side.emit(SideEvent{}); });
  const auto parent = bus.emit(HoldEvent{});
  const auto next = bus.emit(TaskEvent{1});
  next.wait({.timeout = patience});
  CHECK(parent.event_status() == EventStatus::completed);
  REQUIRE(child);
  CHECK(child->event_status() != EventStatus::completed);
  gate.open();
  child->wait();
}

TEST_CASE("the lock does not cover the event's run on another bus", "[Q-6]") {
  Gate gate;
  EventBus a("RunOfA");
  EventBus b("RunOfB");
  const OpenAtExit open(gate);
  a.on<TaskEvent>([&](const TaskEvent&) {});
  a.on("HoldEvent", b.forwarder());
  b.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); });
  const auto event = a.emit(HoldEvent{});
  const auto next = a.emit(TaskEvent{1});
  next.wait({.timeout = patience});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(event.event_status() == EventStatus::started);
  CHECK(event.event_pending_bus_count() == 1);
  gate.open();
  event.wait();
  CHECK(event.event_pending_bus_count() == 0);
}

TEST_CASE("an event changed to parallel while queued runs as parallel", "[Q-7]") {
  Gate gate;
  Meeting meeting;
  EventBus bus("ChangesMode");
  const OpenAtExit open(gate);
  bus.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); });
  bus.on<TaskEvent>([&](const TaskEvent&) { return meeting.meet(2); });
  bus.emit(HoldEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto changed = bus.emit(TaskEvent{1});
  const auto serial = bus.emit(TaskEvent{2});
  changed.set_event_concurrency(parallel);
  CHECK(bus.resolve_event_lock(changed) == EventLock::none);
  CHECK(bus.resolve_event_lock(serial) == EventLock::bus);
  gate.open();
  CHECK(changed.wait().event_result<bool>() == true);
  CHECK(serial.wait().event_result<bool>() == true);
  CHECK(meeting.max() == 2);
}

TEST_CASE("an event changed to global-serial while queued waits for the domain's lock", "[Q-7]") {
  Gate gate;
  Gate first;
  EventBus bus("ChangesToGlobal", {.domain = Domain()});
  EventBus holder("ChangesToGlobalHolder", {.event_concurrency = global_serial, .domain = bus.options().domain});
  const OpenAtExit open(gate, first);
  holder.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); });
  bus.on<HoldEvent>([&](const HoldEvent&) { first.wait(); });
  bus.emit(HoldEvent{});
  REQUIRE(first.wait_for_arrivals(1));
  holder.emit(HoldEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto changed = bus.emit(TaskEvent{1});
  changed.set_event_concurrency(global_serial);
  first.open();
  run_probe(bus);
  // Its lock is now the domain's, which another bus holds.
  CHECK(changed.event_status() == EventStatus::pending);
  gate.open();
  changed.wait();
  CHECK(changed.event_status() == EventStatus::completed);
}

TEST_CASE("a head that now() claims while it waits for the domain's lock holds nothing up", "[Q-5][S-JMP-25]") {
  Gate gate;
  const Domain domain;
  EventBus holder("ClaimedHeadHolder", {.event_concurrency = global_serial, .domain = domain});
  EventBus bus("ClaimedHead", {.domain = domain});
  const OpenAtExit open(gate);
  holder.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); });
  bus.on<TaskEvent>([&](const TaskEvent& event) { return event.number; });
  holder.emit(HoldEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto head = bus.emit(TaskEvent{1}, {.event_concurrency = global_serial});
  const auto behind = bus.emit(TaskEvent{2});
  run_probe(bus);
  CHECK(behind.event_status() == EventStatus::pending);
  CHECK(head.now().event_result<int>() == 1);
  // The lock is still held elsewhere, but what was behind the head does not need it.
  CHECK(behind.wait({.timeout = patience}).event_result<int>() == 2);
  gate.open();
  CHECK(holder.emit(TaskEvent{3}).wait({.timeout = patience}).event_status() == EventStatus::completed);
}

TEST_CASE("errors and timeouts neither stop the queue nor keep a lock", "[Q-8]") {
  const CapturedLog log;
  const Domain domain;
  for (const EventConcurrency mode : {bus_serial, global_serial}) {
    Gate gate;
    Recorder order;
    EventBus bus("GoesOn", {.event_concurrency = mode, .domain = domain});
    EventBus other("GoesOnOther", {.event_concurrency = mode, .domain = domain});
    const OpenAtExit open(gate);
    bus.on<FailEvent>([&](const FailEvent&) { throw std::runtime_error("boom"); });
    bus.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); }, {.handler_timeout = 20ms});
    bus.on<TaskEvent>([&](const TaskEvent& event) { order.add(std::to_string(event.number)); });
    other.on<TaskEvent>([&](const TaskEvent&) { order.add("other"); });
    const auto failed = bus.emit(FailEvent{});
    bus.emit(TaskEvent{1}).wait();
    const auto timed_out = bus.emit(HoldEvent{});
    const auto second = bus.emit(TaskEvent{2});
    second.wait();
    const auto event_timeout = bus.emit(HoldEvent{}, {.event_timeout = 20ms});
    bus.emit(TaskEvent{3}).wait();
    other.emit(TaskEvent{4}).wait();
    CHECK(order.notes() == Notes{"1", "2", "3", "other"});
    CHECK(failed.event_status() == EventStatus::completed);
    CHECK(failed.event_results()[0].status() == EventResultStatus::error);
    CHECK(timed_out.event_results()[0].error_type() == "EventHandlerTimeoutError");
    CHECK(event_timeout.event_results()[0].status() == EventResultStatus::error);
    CHECK(bus.wait_until_idle(patience));
  }
}

TEST_CASE("the timeout clocks start with the run, not at emit", "[Q-12]") {
  Gate gate;
  EventBus bus("ClockOfRun");
  const OpenAtExit open(gate);
  bus.on<HoldEvent>([&](const HoldEvent&) { gate.wait(); });
  bus.on<TaskEvent>([&](const TaskEvent&) { return 1; });
  bus.emit(HoldEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto event = bus.emit(TaskEvent{1}, {.event_timeout = 500ms, .event_handler_timeout = 500ms});
  std::this_thread::sleep_for(600ms);
  CHECK(event.event_status() == EventStatus::pending);
  gate.open();
  CHECK(event.wait().event_result<int>() == 1);
  CHECK(event.event_errors().empty());
}

}  // namespace

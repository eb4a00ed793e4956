// What `emit` does and leaves: S-EMIT-1, -3, -6, -7, -11, -13, -14.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Notes = std::vector<std::string>;

struct WorkEvent {
  int number = 0;
};
struct BlockEvent {};
struct FollowUp {};
struct Unhandled {};

TEST_CASE("emit returns the event it was given, dispatch is the same", "[S-EMIT-1]") {
  EventBus bus("EmitIdentity");
  const Event<WorkEvent> typed = make_event(WorkEvent{4});
  const Event<WorkEvent> typed_returned = bus.emit(typed);
  CHECK(typed_returned == typed);
  const BaseEvent untyped = BaseEvent::make("Untyped");
  CHECK(bus.emit(untyped) == untyped);
  const BaseEvent dispatched = make_event(WorkEvent{5});
  CHECK(bus.dispatch(dispatched) == dispatched);
  CHECK(bus.dispatch(WorkEvent{6})->number == 6);
  CHECK(bus.dispatch(WorkEvent{7}, EventOptions{.event_version = "2"}).event_version() == "2");
  const EventBusRef reference = bus;
  CHECK(reference.emit(WorkEvent{8})->number == 8);
  STATIC_REQUIRE(std::is_same_v<decltype(bus.emit(WorkEvent{})), Event<WorkEvent>>);
  STATIC_REQUIRE(std::is_same_v<decltype(bus.emit(untyped)), BaseEvent>);
  CHECK(bus.wait_until_idle());
  const auto events = bus.event_history().events();
  REQUIRE(events.size() == 6);
  CHECK(events[0] == typed);
  CHECK(events[1] == untyped);
  CHECK(events[2] == dispatched);
}

TEST_CASE("emit never waits for a handler", "[S-EMIT-1]") {
  Gate gate;
  EventBus bus("EmitReturns", {.max_history_size = std::nullopt});
  const OpenAtExit open(gate);
  bus.on<BlockEvent>([&](const BlockEvent&) { gate.wait(); });
  std::vector<BaseEvent> events;
  for (const auto mode : {EventConcurrency::bus_serial, EventConcurrency::parallel, EventConcurrency::global_serial}) {
    for (int i = 0; i < 3; ++i) events.push_back(bus.emit(BlockEvent{}, {.event_concurrency = mode}));
  }
  // All emits have returned and no handler can have.
  for (const BaseEvent& event : events) CHECK(event.event_status() != EventStatus::completed);
  gate.open();
  for (const BaseEvent& event : events) event.wait();
  CHECK(bus.events_completed().size() == 9);
}

TEST_CASE("emit works from any thread and from handlers", "[S-EMIT-1]") {
  std::atomic<int> calls = 0;
  EventBus bus("EmitAnywhere", {.max_history_size = std::nullopt});
  bus.on<WorkEvent>([&](const Event<WorkEvent>& event) {
    ++calls;
    if (event->number > 0) bus.emit(WorkEvent{event->number - 1});
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 25; ++i) bus.emit(WorkEvent{1});
      });
    }
  }
  CHECK(bus.wait_until_idle());
  CHECK(calls == 200);
}

TEST_CASE("an accepted event is complete when emit returns", "[S-EMIT-3]") {
  Gate gate;
  EventBus bus("Accepts");
  const OpenAtExit open(gate);
  bus.on<BlockEvent>([&](const BlockEvent&) { gate.wait(); });
  const auto blocker = bus.emit(BlockEvent{});
  REQUIRE(gate.wait_for_arrivals(1));

  auto found = bus.find_async<WorkEvent>({.past = false, .future = true});
  REQUIRE(bus.find_waiter_count() == 1);
  const auto event = bus.emit(WorkEvent{1});
  CHECK(event.event_path() == Notes{bus.label()});
  CHECK(event.event_pending_bus_count() == 1);
  CHECK(event.event_status() == EventStatus::pending);
  CHECK(bus.event_history().has_event(event.event_id()));
  CHECK(bus.event_history().events().back() == event);
  CHECK(bus.pending_event_queue() == std::vector<Uuid>{event.event_id()});
  CHECK(bus.find_waiter_count() == 0);
  REQUIRE(found.wait_for(patience));
  CHECK(found.get() == event);
  CHECK_FALSE(bus.is_idle_and_queue_empty());

  CHECK(blocker.event_pending_bus_count() == 1);
  CHECK(bus.events_started() == std::vector<BaseEvent>{blocker});
  gate.open();
  event.wait();
  CHECK(event.event_pending_bus_count() == 0);
  CHECK(event.event_path() == Notes{bus.label()});
}

TEST_CASE("emit never runs a handler on the caller's stack", "[S-EMIT-6]") {
  static thread_local bool emitting = false;
  std::atomic<int> on_stack = 0;
  std::atomic<int> calls = 0;
  EventBus bus("EmitStack", {.max_history_size = std::nullopt});
  EventBus target("EmitStackTarget", {.max_history_size = std::nullopt});
  const auto emit_to = [](const EventBusRef& to, auto payload, EventConcurrency mode) {
    emitting = true;
    auto event = to.emit(payload, {.event_concurrency = mode});
    emitting = false;
    return event;
  };
  target.on<FollowUp>([&](const FollowUp&) {
    ++calls;
    if (emitting) ++on_stack;
  });
  bus.on<WorkEvent>([&](const WorkEvent&) {
    if (emitting) ++on_stack;
    for (const auto mode :
         {EventConcurrency::bus_serial, EventConcurrency::parallel, EventConcurrency::global_serial}) {
      emit_to(target, FollowUp{}, mode);
    }
  });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 20; ++i) {
    events.push_back(emit_to(bus, WorkEvent{i}, i % 2 ? EventConcurrency::parallel : EventConcurrency::bus_serial));
  }
  for (const BaseEvent& event : events) event.wait();
  CHECK(target.wait_until_idle());
  CHECK(calls == 60);
  CHECK(on_stack == 0);
}

TEST_CASE("emitting an event again on its bus is a no-op", "[S-EMIT-7]") {
  Gate gate;
  std::atomic<int> calls = 0;
  EventBus bus("EmitTwice");
  const OpenAtExit open(gate);
  bus.on<BlockEvent>([&](const BlockEvent&) { gate.wait(); });
  bus.on<WorkEvent>([&](const WorkEvent&) { ++calls; });
  const auto blocker = bus.emit(BlockEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto event = bus.emit(WorkEvent{1});

  // while one is started and one pending
  CHECK(bus.emit(blocker) == blocker);
  CHECK(bus.emit(event) == event);
  CHECK(bus.emit(BaseEvent(event)) == event);
  CHECK(event.event_path() == Notes{bus.label()});
  CHECK(event.event_pending_bus_count() == 1);
  CHECK(bus.event_history().size() == 2);
  CHECK(bus.pending_event_queue().size() == 1);

  gate.open();
  event.wait();
  // and when completed
  CHECK(bus.emit(event) == event);
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_pending_bus_count() == 0);
  CHECK(bus.wait_until_idle());
  CHECK(bus.event_history().size() == 2);
  CHECK(calls == 1);
}

TEST_CASE("an ignored emit resolves no waiter", "[S-EMIT-7]") {
  EventBus bus("EmitTwiceFind");
  const auto event = bus.emit(WorkEvent{1});
  event.wait();
  auto found = bus.find_async<WorkEvent>({.past = false, .future = true});
  REQUIRE(bus.find_waiter_count() == 1);
  bus.emit(event);
  CHECK(bus.find_waiter_count() == 1);
  CHECK_FALSE(found.ready());
  const auto next = bus.emit(WorkEvent{2});
  REQUIRE(found.wait_for(patience));
  CHECK(found.get() == next);
}

TEST_CASE("an ignored emit is not limited by the history, nor run again after trimming", "[S-EMIT-7]") {
  std::atomic<int> calls = 0;
  EventBus bus("EmitTwiceFull", {.max_history_size = 1});
  bus.on<WorkEvent>([&](const WorkEvent&) { ++calls; });
  const auto event = bus.emit(WorkEvent{1});
  event.wait();
  CHECK(bus.event_history().size() == 1);
  CHECK_NOTHROW(bus.emit(event));
  CHECK(bus.event_history().remove_event(event.event_id()));
  CHECK(bus.emit(event) == event);
  CHECK(bus.wait_until_idle());
  CHECK(bus.event_history().size() == 0);
  CHECK(calls == 1);
}

TEST_CASE("forwarding in a circle ends", "[S-EMIT-7]") {
  Recorder heard;
  EventBus a("CircleA");
  EventBus b("CircleB");
  a.on<WorkEvent>([&](const WorkEvent&) { heard.add("a"); });
  b.on<WorkEvent>([&](const WorkEvent&) { heard.add("b"); });
  a.on("*", b.forwarder());
  b.on("*", a.forwarder());
  const auto event = a.emit(WorkEvent{1});
  event.wait();
  CHECK(a.wait_until_idle());
  CHECK(b.wait_until_idle());
  CHECK(heard.size() == 2);
  CHECK(event.event_path() == Notes{a.label(), b.label()});
  CHECK(a.event_history().size() == 1);
  CHECK(b.event_history().size() == 1);
}

TEST_CASE("an event emitted inside a handler goes to the tail", "[S-EMIT-11]") {
  Gate gate;
  Recorder order;
  EventBus bus("EmitTail");
  const OpenAtExit open(gate);
  bus.on<BlockEvent>([&](const Event<BlockEvent>& event) {
    gate.wait();
    bus.emit(FollowUp{});
    event.emit(FollowUp{});
    order.add("block");
  });
  bus.on<WorkEvent>([&](const WorkEvent& event) { order.add("work" + std::to_string(event.number)); });
  bus.on<FollowUp>([&](const FollowUp&) { order.add("follow-up"); });
  bus.emit(BlockEvent{});
  bus.emit(WorkEvent{1});
  bus.emit(WorkEvent{2});
  gate.open();
  CHECK(bus.wait_until_idle());
  CHECK(order.notes() == Notes{"block", "work1", "work2", "follow-up", "follow-up"});
}

TEST_CASE("an event emitted inside a handler on a free bus may start at once", "[S-EMIT-11]") {
  Gate started;
  EventBus bus("EmitElsewhere");
  EventBus free("EmitElsewhereFree");
  free.on<FollowUp>([&](const FollowUp&) { started.open(); });
  bus.on<WorkEvent>([&](const WorkEvent&) {
    free.emit(FollowUp{});
    return started.wait();
  });
  CHECK(bus.emit(WorkEvent{1}).wait().event_result<bool>() == true);
}

TEST_CASE("an event without handlers waits its turn and completes", "[S-EMIT-13]") {
  Gate gate;
  EventBus bus("EmitUnhandled");
  const OpenAtExit open(gate);
  bus.on<BlockEvent>([&](const BlockEvent&) { gate.wait(); });
  const auto blocker = bus.emit(BlockEvent{});
  const auto event = bus.emit(Unhandled{});
  const auto aside = bus.emit(Unhandled{}, {.event_concurrency = EventConcurrency::parallel});
  REQUIRE(gate.wait_for_arrivals(1));
  aside.wait();
  CHECK(event.event_status() == EventStatus::pending);
  CHECK(bus.pending_event_queue() == std::vector<Uuid>{event.event_id()});
  gate.open();
  event.wait();
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_results().empty());
  REQUIRE(event.event_started_at());
  REQUIRE(event.event_completed_at());
  CHECK(*event.event_started_at() >= *blocker.event_completed_at());
  CHECK(*event.event_completed_at() >= *event.event_started_at());
}

template <class Options>
concept can_jump = requires(Options options) {
  options.queue_jump;
};

template <class Bus>
concept has_jump = requires(Bus bus, WorkEvent event) {
  bus.emit(event, true);
}
|| requires(Bus bus, WorkEvent event) {
  bus.emit(event, EventOptions{}, true);
};

TEST_CASE("there is no emit option that jumps the queue", "[S-EMIT-14]") {
  STATIC_REQUIRE_FALSE(can_jump<EventOptions>);
  STATIC_REQUIRE_FALSE(has_jump<EventBus>);
  STATIC_REQUIRE_FALSE(has_jump<EventBusRef>);
}

}  // namespace

// Emits that are refused, the order of the checks, and what refusal leaves: S-EMIT-2, S-EMIT-4, S-EMIT-5.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;
using abxbus::test::contains;

using Notes = std::vector<std::string>;

struct StockEvent {
  int number = 0;
};
struct GateEvent {};
struct ParentEvent {};
struct BadlyNamed {
  static constexpr std::string_view event_type = "not valid";
};

bool untouched(const BaseEvent& event) {
  return event.event_path().empty() && event.event_pending_bus_count() == 0 && !event.event_parent_id() &&
         !event.event_emitted_by_handler_id() && event.event_status() == EventStatus::pending &&
         !event.event_started_at() && !event.event_completed_at() && event.event_results().empty();
}

TEST_CASE("emit on a destroyed bus throws and changes nothing", "[S-EMIT-2][S-EMIT-4]") {
  EventBus bus("EmitDestroyed");
  EventBus other("EmitDestroyedOther");
  bus.on("*", [](BaseEvent) {});
  bus.destroy(false);
  const std::string text = bus.label() + " has been destroyed and cannot be used again";
  const auto event = make_event(StockEvent{1});
  const BaseEvent base = event;
  const EventBusRef reference = bus;
  CHECK(message_of<EventBusDestroyedError>([&] { return bus.emit(event); }) == text);
  CHECK(message_of<EventBusDestroyedError>([&] { return bus.emit(base); }) == text);
  CHECK(message_of<EventBusDestroyedError>([&] { return bus.emit(StockEvent{}); }) == text);
  CHECK(message_of<EventBusDestroyedError>([&] { return bus.emit(StockEvent{}, {.event_timeout = 1s}); }) == text);
  CHECK(message_of<EventBusDestroyedError>([&] { return bus.dispatch(event); }) == text);
  CHECK(message_of<EventBusDestroyedError>([&] { return reference.emit(event); }) == text);
  try {
    bus.emit(event);
    FAIL("emit did not throw");
  } catch (const EventBusDestroyedError& error) {
    CHECK(error.eventbus_name() == "EmitDestroyed");
    CHECK(error.eventbus_id() == bus.id());
    CHECK(error.eventbus_label() == bus.label());
    CHECK(error.operation() == "emit");
  }
  CHECK(untouched(event));
  CHECK(bus.event_history().size() == 0);
  CHECK(other.emit(event).wait().event_path() == Notes{other.label()});
}

TEST_CASE("emit through a reference whose owner is gone throws", "[S-EMIT-2]") {
  std::optional<EventBusRef> reference;
  {
    EventBus bus("EmitOwnerGone");
    reference = bus;
  }
  CHECK(reference->expired());
  CHECK(message_of<EventBusDestroyedError>([&] { return reference->emit(StockEvent{}); }) ==
        reference->label() + " has been destroyed and cannot be used again");
}

TEST_CASE("the destroyed check comes before the others", "[S-EMIT-2]") {
  EventBus bus("CheckOrderDestroyed", {.max_history_size = 1});
  const auto accepted = bus.emit(StockEvent{1});
  accepted.wait();
  bus.destroy(false);
  CHECK_THROWS_AS(bus.emit(accepted), EventBusDestroyedError);
  CHECK_THROWS_AS(bus.emit(StockEvent{2}), EventBusDestroyedError);
}

TEST_CASE("the sanity check comes before the history limit", "[S-EMIT-2]") {
  EventBus bus("CheckOrderSanity", {.max_history_size = 1});
  const auto accepted = bus.emit(StockEvent{1});
  accepted.wait();
  CHECK_THROWS_AS(bus.emit(StockEvent{2}), EventBusHistoryLimitError);
  CHECK_THROWS_AS(bus.emit(BadlyNamed{}), ValidationError);
  CHECK_THROWS_AS(bus.emit(StockEvent{2}, {.event_type = "not valid"}), ValidationError);
}

TEST_CASE("the path check comes before the history limit", "[S-EMIT-2]") {
  EventBus bus("CheckOrderPath", {.max_history_size = 1});
  const auto accepted = bus.emit(StockEvent{1});
  accepted.wait();
  CHECK(bus.emit(accepted) == accepted);
}

TEST_CASE("an event whose declared type is no identifier is not accepted", "[S-EMIT-2][S-EMIT-4]") {
  std::atomic<int> calls = 0;
  EventBus bus("EmitBadType");
  bus.on("*", [&](BaseEvent) { ++calls; });
  CHECK_THROWS_AS(bus.emit(BadlyNamed{}), ValidationError);
  CHECK(bus.event_history().size() == 0);
  CHECK(bus.is_idle_and_queue_empty());
  bus.emit(StockEvent{1}).wait();
  CHECK(calls == 1);
}

TEST_CASE("an emit refused by the history limit changes nothing", "[S-EMIT-4][S-EMIT-5]") {
  std::atomic<int> calls = 0;
  EventBus bus("EmitFull", {.max_history_size = 2});
  bus.on<StockEvent>([&](const StockEvent&) { ++calls; });
  const auto first = bus.emit(StockEvent{1});
  const auto second = bus.emit(StockEvent{2});
  CHECK(bus.wait_until_idle());

  auto found = bus.find_async<StockEvent>({.past = false, .future = true});
  const auto refused = make_event(StockEvent{3});
  CHECK_THAT(message_of<EventBusHistoryLimitError>([&] { return bus.emit(refused); }),
             contains("history limit reached (2/2)"));
  CHECK(untouched(refused));
  CHECK(bus.event_history().events() == std::vector<BaseEvent>{first, second});
  CHECK(bus.pending_event_queue().empty());
  CHECK(bus.is_idle_and_queue_empty());
  CHECK(bus.find_waiter_count() == 1);
  CHECK_FALSE(found.ready());
  CHECK(calls == 2);

  // The same object is accepted once there is room.
  CHECK(bus.event_history().remove_event(first.event_id()));
  CHECK(bus.emit(refused) == refused);
  refused.wait();
  CHECK(refused.event_path() == Notes{bus.label()});
  CHECK(bus.event_history().events() == std::vector<BaseEvent>{second, refused});
  CHECK(calls == 3);
  REQUIRE(found.wait_for(patience));
  CHECK(found.get() == refused);
}

TEST_CASE("the limit error tells bus, type, size and limit", "[S-EMIT-5]") {
  EventBus bus("LimitError", {.max_history_size = 1});
  bus.emit(StockEvent{1}).wait();
  try {
    bus.emit(StockEvent{2});
    FAIL("emit did not throw");
  } catch (const EventBusHistoryLimitError& error) {
    CHECK(error.eventbus_label() == bus.label());
    CHECK(error.event_type() == "StockEvent");
    CHECK(error.size() == 1);
    CHECK(error.limit() == 1);
    CHECK(std::string(error.what()) == bus.label() + ".emit(StockEvent) rejected: history limit reached (1/1); " +
                                           "set event_history.max_history_drop=true to drop old history instead.");
  }
}

TEST_CASE("a refused child gets no parent", "[S-EMIT-4]") {
  const auto child = make_event(StockEvent{1});
  std::atomic<bool> refused = false;
  EventBus bus("RefusedChild", {.max_history_size = 1});
  EventBus other("RefusedChildOther");
  bus.on<ParentEvent>([&](const Event<ParentEvent>& event) {
    try {
      event.emit(child);
    } catch (const EventBusHistoryLimitError&) {
      refused = true;
    }
  });
  const auto parent = bus.emit(ParentEvent{});
  parent.wait();
  CHECK(refused);
  CHECK(untouched(child));
  CHECK(parent.event_children().empty());
  CHECK(parent.event_results()[0].event_children().empty());
  other.emit(child).wait();
  CHECK_FALSE(child.event_parent_id());
}

TEST_CASE("queues are unbounded", "[S-EMIT-5]") {
  constexpr std::size_t count = 20'000;
  Gate gate;
  std::atomic<std::size_t> calls = 0;
  EventBus bus("EmitUnbounded", {.max_history_size = std::nullopt});
  const OpenAtExit open(gate);
  bus.on<GateEvent>([&](const GateEvent&) { gate.wait(); });
  bus.on<StockEvent>([&](const StockEvent&) { ++calls; });
  bus.emit(GateEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  for (std::size_t i = 0; i < count; ++i) bus.emit(StockEvent{1});
  CHECK(bus.pending_event_queue().size() == count);
  gate.open();
  CHECK(bus.wait_until_idle());
  CHECK(calls == count);
}

TEST_CASE("without rejection the history drops and the queue still takes everything", "[S-EMIT-5]") {
  const CapturedLog log;
  Gate gate;
  std::atomic<int> calls = 0;
  EventBus dropping("EmitDropping", {.max_history_size = 5, .max_history_drop = true});
  EventBus none("EmitKeepsNone", {.max_history_size = 0});
  const OpenAtExit open(gate);
  for (EventBus* bus : {&dropping, &none}) {
    bus->on<GateEvent>([&](const GateEvent&) { gate.wait(); });
    bus->on<StockEvent>([&](const StockEvent&) { ++calls; });
    bus->emit(GateEvent{});
  }
  REQUIRE(gate.wait_for_arrivals(2));
  for (int i = 0; i < 50; ++i) {
    CHECK_NOTHROW(dropping.emit(StockEvent{i}));
    CHECK_NOTHROW(none.emit(StockEvent{i}));
  }
  gate.open();
  CHECK(dropping.wait_until_idle());
  CHECK(none.wait_until_idle());
  CHECK(calls == 100);
  CHECK(dropping.event_history().size() <= 5);
  CHECK(none.event_history().size() == 0);
}

}  // namespace

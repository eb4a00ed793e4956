// Parents and children: what an emission records.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Parent {
  int number = 0;
};
struct Child {
  int number = 0;
};

TEST_CASE("a root has no parent, no emitter and blocks nobody", "[H-LIN-1]") {
  EventBus bus("LineageRoot");
  bus.on<Parent>([](const Parent&) { return 1; });
  const auto event = settled(bus.emit(Parent{}));
  CHECK_FALSE(event.event_parent_id().has_value());
  CHECK_FALSE(event.event_emitted_by_handler_id().has_value());
  CHECK_FALSE(event.event_blocks_parent_completion());
  CHECK(event.event_children().empty());
  REQUIRE(event.event_results().size() == 1);
  CHECK(event.event_results()[0].event_children().empty());
}

TEST_CASE("a child emitted and awaited is linked and blocks its parent", "[H-LIN-1][H-LIN-2]") {
  EventBus bus("LineageAwaited");
  std::optional<Event<Child>> child;
  bool blocks_before = true;
  const EventHandler emitter = bus.on<Parent>([&](const Event<Parent>& event) {
    child = event.emit(Child{1});
    blocks_before = child->event_blocks_parent_completion();
    child->now();
  });
  bus.on<Child>([](const Child&) {});
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(child);
  CHECK_FALSE(blocks_before);
  CHECK(child->event_parent_id() == std::optional(parent.event_id()));
  CHECK(child->event_emitted_by_handler_id() == std::optional(emitter.id()));
  CHECK(child->event_blocks_parent_completion());
  CHECK(child->event_status() == EventStatus::completed);
  CHECK(parent.event_children() == std::vector<BaseEvent>{*child});
  CHECK(parent.event_results()[0].event_children() == std::vector<BaseEvent>{*child});
}

TEST_CASE("awaiting through a result accessor blocks the parent too", "[H-LIN-2]") {
  EventBus bus("LineageAccessor");
  std::vector<Event<Child>> children;
  bus.on<Parent>([&](const Event<Parent>& event) {
    children.push_back(event.emit(Child{1}));
    children.back().event_result<int>();
    children.push_back(event.emit(Child{2}));
    children.back().event_results_list<int>();
  });
  bus.on<Child>([](const Child& child) { return child.number; });
  settled(bus.emit(Parent{}));
  REQUIRE(children.size() == 2);
  for (const auto& child : children) CHECK(child.event_blocks_parent_completion());
}

TEST_CASE("a child emitted and not awaited is linked and blocks nobody", "[H-LIN-2]") {
  EventBus bus("LineageUnawaited");
  std::optional<Event<Child>> child;
  const EventHandler emitter = bus.on<Parent>([&](const Event<Parent>& event) { child = event.emit(Child{1}); });
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(child);
  CHECK(child->event_parent_id() == std::optional(parent.event_id()));
  CHECK(child->event_emitted_by_handler_id() == std::optional(emitter.id()));
  CHECK(parent.event_children() == std::vector<BaseEvent>{*child});
  settled(*child);
  CHECK_FALSE(child->event_blocks_parent_completion());
}

TEST_CASE("a child that is only waited for is linked and blocks nobody", "[H-LIN-2]") {
  EventBus bus("LineageWaited");
  std::optional<Event<Child>> child;
  bus.on<Parent>([&](const Event<Parent>& event) {
    child = event.emit(Child{1}, {.event_concurrency = EventConcurrency::parallel});
    child->wait();
  });
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(child);
  CHECK(child->event_parent_id() == std::optional(parent.event_id()));
  CHECK(child->event_status() == EventStatus::completed);
  CHECK_FALSE(child->event_blocks_parent_completion());
}

TEST_CASE("an event emitted through a bus inside a handler is detached, awaited or not", "[H-LIN-2]") {
  EventBus bus("LineageDetached");
  EventBus other("LineageDetachedOther");
  std::vector<Event<Child>> detached;
  bus.on<Parent>([&](const Event<Parent>& event) {
    detached.push_back(bus.emit(Child{1}));
    detached.push_back(bus.emit(Child{2}).now());
    detached.push_back(other.emit(Child{3}).now());
    detached.push_back(event.event_bus().emit(Child{4}));
  });
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(detached.size() == 4);
  for (const auto& event : detached) {
    settled(event);
    CHECK_FALSE(event.event_parent_id().has_value());
    CHECK_FALSE(event.event_emitted_by_handler_id().has_value());
    CHECK_FALSE(event.event_blocks_parent_completion());
  }
  CHECK(parent.event_children().empty());
}

TEST_CASE("an event that emits itself or is forwarded stays what it was", "[H-LIN-2][H-FWD-5]") {
  EventBus bus("LineageSelf");
  EventBus other("LineageSelfOther");
  bus.on<Parent>([&](const Event<Parent>& event) {
    event.emit(event);
    other.emit(event);
  });
  const auto event = settled(bus.emit(Parent{}));
  CHECK_FALSE(event.event_parent_id().has_value());
  CHECK_FALSE(event.event_emitted_by_handler_id().has_value());
  CHECK(event.event_children().empty());
  CHECK(event.event_path() == std::vector<std::string>{bus.label(), other.label()});
}

TEST_CASE("an explicit parent is never overwritten", "[H-LIN-3]") {
  EventBus bus("LineageExplicit");
  const Uuid foreign = Uuid::v7();
  std::optional<Event<Child>> child;
  const EventHandler emitter = bus.on<Parent>([&](const Event<Parent>& event) {
    child = event.emit(Child{1}, {.event_parent_id = foreign});
    child->now();
  });
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(child);
  CHECK(child->event_parent_id() == std::optional(foreign));
  CHECK(child->event_emitted_by_handler_id() == std::optional(emitter.id()));
  CHECK(parent.event_children() == std::vector<BaseEvent>{*child});
  CHECK_FALSE(child->event_blocks_parent_completion());
}

TEST_CASE("children are linked in serial and parallel handlers, plain and coroutine", "[H-LIN-4]") {
  for (const auto mode : {EventHandlerConcurrency::serial, EventHandlerConcurrency::parallel}) {
    EventBus bus(mode == EventHandlerConcurrency::serial ? "LineageKindsSerial" : "LineageKindsParallel",
                 {.event_handler_concurrency = mode});
    const EventHandler plain = bus.on<Parent>([](const Event<Parent>& event) { event.emit(Child{1}); });
    const EventHandler coroutine = bus.on<Parent>([](Event<Parent> event) -> task<> {
      const auto awaited = event.emit(Child{2});
      co_await awaited.now_async();
      event.emit(Child{3});
    });
    const auto parent = settled(bus.emit(Parent{}));
    const EventResults results = parent.event_results();
    REQUIRE(results.size() == 2);
    CHECK(numbers_of<Child>(results.at(plain.id()).event_children()) == std::vector<int>{1});
    CHECK(numbers_of<Child>(results.at(coroutine.id()).event_children()) == std::vector<int>{2, 3});
    for (const auto& child : parent.event_children())
      CHECK(child.event_parent_id() == std::optional(parent.event_id()));
    REQUIRE(bus.wait_until_idle(patience));
  }
}

TEST_CASE("a child emitted before a throw keeps its link and later handlers link theirs", "[H-LIN-4]") {
  EventBus bus("LineageThrow");
  const EventHandler throwing = bus.on<Parent>([](const Event<Parent>& event) {
    event.emit(Child{1});
    throw std::runtime_error("after the emit");
  });
  const EventHandler later = bus.on<Parent>([](const Event<Parent>& event) { event.emit(Child{2}); });
  const auto parent = settled(bus.emit(Parent{}));
  CHECK(numbers_of<Child>(parent.event_children()) == std::vector<int>{1, 2});
  const std::vector<BaseEvent> children = parent.event_children();
  CHECK(children[0].event_emitted_by_handler_id() == std::optional(throwing.id()));
  CHECK(children[1].event_emitted_by_handler_id() == std::optional(later.id()));
  CHECK(parent.event_results()[0].status() == EventResultStatus::error);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(children[0].event_status() == EventStatus::completed);
}

TEST_CASE("outside handlers event.emit sets the parent and nothing else", "[H-LIN-5]") {
  EventBus bus("LineageOutside");
  bus.on<Parent>([](const Parent&) {});
  const auto parent = settled(bus.emit(Parent{}));
  const auto child = settled(parent.emit(Child{1}));
  CHECK(child.event_parent_id() == std::optional(parent.event_id()));
  CHECK_FALSE(child.event_emitted_by_handler_id().has_value());
  CHECK_FALSE(child.event_blocks_parent_completion());
  CHECK(parent.event_children().empty());
  CHECK(child.event_path() == std::vector<std::string>{bus.label()});

  const Uuid foreign = Uuid::v7();
  const auto adopted = settled(parent.emit(Child{2}, {.event_parent_id = foreign}));
  CHECK(adopted.event_parent_id() == std::optional(foreign));
}

TEST_CASE("emitting on an event other than the one being handled sets the parent only", "[H-LIN-5]") {
  EventBus bus("LineageOtherEvent");
  const auto other = settled(bus.emit(Child{100}));
  std::optional<Event<Child>> child;
  bus.on<Parent>([&](const Event<Parent>&) { child = other.emit(Child{1}); });
  const auto parent = settled(bus.emit(Parent{}));
  REQUIRE(child);
  settled(*child);
  CHECK(child->event_parent_id() == std::optional(other.event_id()));
  CHECK_FALSE(child->event_emitted_by_handler_id().has_value());
  CHECK(parent.event_children().empty());
  CHECK(other.event_children().empty());
}

TEST_CASE("emitting on an event without a bus throws and leaves the child alone", "[H-LIN-5]") {
  const auto parent = make_event(Parent{});
  const auto child = make_event(Child{1});
  REQUIRE_THROWS_AS(parent.emit(child), ValidationError);
  CHECK_THROWS_WITH(parent.emit(child), "event has no bus attached");
  CHECK_FALSE(child.event_parent_id().has_value());
  CHECK(child.event_path().empty());
  CHECK(child.event_status() == EventStatus::pending);
}

}  // namespace

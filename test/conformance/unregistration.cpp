// `off`, snapshots of a run, lifetime of callables: S-REG-11 to S-REG-16.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Keys = std::vector<std::pair<std::string, std::vector<std::string>>>;
using Notes = std::vector<std::string>;

struct OffEvent {};
struct OtherOffEvent {};
struct BlockerEvent {};

std::atomic<int> shared_calls = 0;
void pointer_handler(BaseEvent) {
  ++shared_calls;
}
void other_pointer_handler(BaseEvent) {
  ++shared_calls;
}

struct SharedHandler {
  Recorder* ran;
  std::string name;
  void operator()(BaseEvent) const { ran->add(name); }
};

Notes ids_of(const EventBusRef& bus) {
  Notes ids;
  for (const EventHandler& handler : bus.handlers()) ids.push_back(handler.id());
  return ids;
}

TEST_CASE("off of a pattern removes that key only", "[S-REG-11]") {
  EventBus bus("OffPattern");
  const auto fill = [&] {
    bus.off<OffEvent>();
    bus.off("*");
    bus.off("Named");
    bus.on<OffEvent>([](const OffEvent&) {}, {.id = "typed1"});
    bus.on("OffEvent", [](BaseEvent) {}, {.id = "typed2"});
    bus.on("*", [](BaseEvent) {}, {.id = "star1"});
    bus.on("*", [](BaseEvent) {}, {.id = "star2"});
    bus.on("Named", [](BaseEvent) {}, {.id = "named"});
  };
  fill();
  bus.off("OffEvent");
  CHECK(ids_of(bus) == Notes{"star1", "star2", "named"});
  fill();
  bus.off<OffEvent>();
  CHECK(ids_of(bus) == Notes{"star1", "star2", "named"});
  fill();
  bus.off("*");
  CHECK(ids_of(bus) == Notes{"typed1", "typed2", "named"});
  CHECK(bus.emit(OffEvent{}).wait().event_results().size() == 2);
}

TEST_CASE("off of an entry or id removes that one", "[S-REG-11]") {
  EventBus bus("OffOne");
  std::vector<EventHandler> handlers;
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    handlers.push_back(bus.on<OffEvent>([](const OffEvent&) {}, {.id = id}));
  }
  bus.off(handlers[0]);
  CHECK(ids_of(bus) == Notes{"b", "c", "d", "e"});
  bus.off("OffEvent", handlers[2]);
  CHECK(ids_of(bus) == Notes{"b", "d", "e"});
  bus.off<OffEvent>(handlers[4]);
  CHECK(ids_of(bus) == Notes{"b", "d"});
  bus.off("OffEvent", "b");
  CHECK(ids_of(bus) == Notes{"d"});
  bus.off<OffEvent>(std::string("d"));
  CHECK(bus.handlers().empty());
}

TEST_CASE("off by a generated id", "[S-REG-11]") {
  EventBus bus("OffGenerated");
  const EventHandler first = bus.on<OffEvent>([](const OffEvent&) {});
  const EventHandler second = bus.on<OffEvent>([](const OffEvent&) {});
  bus.off<OffEvent>(first.id());
  CHECK(ids_of(bus) == Notes{second.id()});
  CHECK_FALSE(bus.handler(first.id()));
}

TEST_CASE("off of a function pointer removes its entries of the key", "[S-REG-11]") {
  EventBus bus("OffPointer");
  bus.on<OffEvent>(&pointer_handler, {.id = "a"});
  bus.on<OffEvent>(&other_pointer_handler, {.id = "b"});
  bus.on("OffEvent", &pointer_handler, {.id = "c"});
  bus.on("*", &pointer_handler, {.id = "d"});
  bus.on<OtherOffEvent>(&pointer_handler, {.id = "e"});
  bus.off<OffEvent>(&pointer_handler);
  CHECK(ids_of(bus) == Notes{"b", "d", "e"});
  bus.off("*", pointer_handler);
  CHECK(ids_of(bus) == Notes{"b", "e"});
  const int before = shared_calls;
  bus.emit(OffEvent{}).wait();
  CHECK(shared_calls == before + 1);
}

TEST_CASE("off of a shared callable removes its entries of the key", "[S-REG-11]") {
  Recorder ran;
  EventBus bus("OffShared");
  const auto one = std::make_shared<SharedHandler>(SharedHandler{&ran, "one"});
  const auto two = std::make_shared<SharedHandler>(SharedHandler{&ran, "two"});
  bus.on<OffEvent>(one);
  bus.on<OffEvent>(two);
  bus.on<OffEvent>(one);
  bus.on<OtherOffEvent>(one);
  bus.off<OffEvent>(one);
  bus.emit(OffEvent{}).wait();
  bus.emit(OtherOffEvent{}).wait();
  CHECK(ran.notes() == Notes{"two", "one"});
}

TEST_CASE("a scoped handler is removed at the end of its scope", "[S-REG-11]") {
  EventBus bus("OffScoped");
  bus.on<OffEvent>([](const OffEvent&) {}, {.id = "stays"});
  {
    const ScopedHandler scoped(bus, bus.on<OffEvent>([](const OffEvent&) {}, {.id = "scoped"}));
    CHECK(scoped.handler().id() == "scoped");
    CHECK(ids_of(bus) == Notes{"stays", "scoped"});
  }
  CHECK(ids_of(bus) == Notes{"stays"});
  std::optional<ScopedHandler> kept;
  {
    ScopedHandler moved(bus, bus.on<OffEvent>([](const OffEvent&) {}, {.id = "moved"}));
    kept.emplace(std::move(moved));
  }
  CHECK(ids_of(bus) == Notes{"stays", "moved"});
  kept.reset();
  CHECK(ids_of(bus) == Notes{"stays"});
}

TEST_CASE("a scoped handler may outlive its bus", "[S-REG-11]") {
  auto bus = std::make_unique<EventBus>("OffScopedLate");
  const ScopedHandler destroyed(*bus, bus->on<OffEvent>([](const OffEvent&) {}));
  const ScopedHandler gone(*bus, bus->on<OffEvent>([](const OffEvent&) {}));
  bus->destroy();
  bus.reset();
  CHECK(gone.handler().event_pattern() == "OffEvent");
}

TEST_CASE("off of what is not there is a no-op", "[S-REG-12]") {
  EventBus bus("OffUnknown");
  EventBus other("OffUnknownOther");
  const EventHandler handler = bus.on<OffEvent>([](const OffEvent&) {}, {.id = "kept"});
  const EventHandler foreign = other.on<OffEvent>([](const OffEvent&) {}, {.id = "foreign"});
  const EventHandler gone = bus.on<OtherOffEvent>([](const OtherOffEvent&) {}, {.id = "gone"});
  bus.off(gone);
  bus.off(gone);
  bus.off<OtherOffEvent>();
  bus.off("Unknown");
  bus.off("*");
  bus.off("OffEvent", "unknown id");
  bus.off("OffEvent", "gone");
  bus.off("Unknown", "kept");
  bus.off("*", handler);
  bus.off(foreign);
  bus.off("OffEvent", foreign);
  bus.off("OffEvent", &pointer_handler);
  bus.off("OffEvent", std::make_shared<SharedHandler>());
  CHECK(bus.handlers_by_key() == Keys{{"OffEvent", {"kept"}}});
  CHECK(other.handler_count() == 1);
}

TEST_CASE("a key disappears with its last handler", "[S-REG-12]") {
  EventBus bus("OffLast");
  const EventHandler a = bus.on<OffEvent>([](const OffEvent&) {}, {.id = "a"});
  bus.on<OffEvent>([](const OffEvent&) {}, {.id = "b"});
  bus.on("*", [](BaseEvent) {}, {.id = "star"});
  bus.off(a);
  CHECK(bus.handlers_by_key() == Keys{{"OffEvent", {"b"}}, {"*", {"star"}}});
  bus.off("OffEvent", "b");
  CHECK(bus.handlers_by_key() == Keys{{"*", {"star"}}});
  bus.off("*");
  CHECK(bus.handlers_by_key().empty());
  CHECK(bus.handler_count() == 0);
  const auto event = bus.emit(OffEvent{});
  event.wait();
  CHECK(event.event_results().empty());
}

TEST_CASE("a run keeps the handlers it started with", "[S-REG-13]") {
  Recorder ran;
  std::optional<EventHandler> second;
  EventBus bus("RunSnapshot");
  bus.on<OffEvent>([&](const OffEvent&) {
    ran.add("first");
    if (second) {
      bus.off(*std::exchange(second, std::nullopt));
      bus.on<OffEvent>([&](const OffEvent&) { ran.add("added"); });
      bus.on("*", [&](BaseEvent) { ran.add("added star"); });
    }
  });
  second = bus.on<OffEvent>([&](const OffEvent&) { ran.add("second"); });
  bus.on<OffEvent>([&](const OffEvent&) { ran.add("third"); });
  const auto event = bus.emit(OffEvent{});
  event.wait();
  CHECK(ran.notes() == Notes{"first", "second", "third"});
  CHECK(event.event_results().size() == 3);
  bus.emit(OffEvent{}).wait();
  CHECK(ran.notes() == Notes{"first", "second", "third", "first", "third", "added", "added star"});
}

TEST_CASE("a handler that removes itself runs to its end", "[S-REG-13]") {
  Recorder ran;
  std::optional<EventHandler> self;
  EventBus bus("RemovesItself");
  self = bus.on<OffEvent>([&](const OffEvent&) {
    bus.off(*self);
    ran.add("once");
    return std::string("value");
  });
  CHECK(bus.emit(OffEvent{}).event_result<std::string>() == "value");
  bus.emit(OffEvent{}).wait();
  CHECK(ran.notes() == Notes{"once"});
}

TEST_CASE("changes between emit and the start of the run count", "[S-REG-14]") {
  Gate gate;
  Recorder ran;
  EventBus bus("BeforeRun");
  const OpenAtExit open(gate);
  bus.on<BlockerEvent>([&](const BlockerEvent&) { gate.wait(); });
  const EventHandler removed = bus.on<OffEvent>([&](const OffEvent&) { ran.add("removed"); });
  bus.emit(BlockerEvent{});
  const auto event = bus.emit(OffEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.off(removed);
  bus.on<OffEvent>([&](const OffEvent&) { ran.add("late"); });
  bus.on("*", [&](BaseEvent) { ran.add("late star"); });
  CHECK(event.event_results().empty());
  gate.open();
  event.wait();
  CHECK(ran.notes() == Notes{"late", "late star"});
  CHECK(event.event_results().size() == 2);
}

TEST_CASE("on and off of a destroyed bus throw", "[S-REG-15]") {
  EventBus bus("OffDestroyed");
  const EventHandler handler = bus.on<OffEvent>([](const OffEvent&) {}, {.id = "x"});
  bus.destroy(false);
  const std::string text = bus.label() + " has been destroyed and cannot be used again";
  const auto message = [](auto call) { return message_of<EventBusDestroyedError>(call); };
  CHECK(message([&] { return bus.on<OffEvent>([](const OffEvent&) {}); }) == text);
  CHECK(message([&] { return bus.on("*", [](BaseEvent) {}); }) == text);
  CHECK(message([&] { bus.off<OffEvent>(); }) == text);
  CHECK(message([&] { bus.off("*"); }) == text);
  CHECK(message([&] { bus.off(handler); }) == text);
  CHECK(message([&] { bus.off("OffEvent", "x"); }) == text);
  CHECK(message([&] { bus.off("OffEvent", &pointer_handler); }) == text);
  CHECK(ids_of(bus) == Notes{"x"});
  try {
    bus.on<OffEvent>([](const OffEvent&) {});
    FAIL("on did not throw");
  } catch (const EventBusDestroyedError& error) {
    CHECK(error.eventbus_name() == bus.name());
    CHECK(error.eventbus_id() == bus.id());
    CHECK(error.eventbus_label() == bus.label());
    CHECK(error.operation() == "on");
  }
  try {
    bus.off("*");
    FAIL("off did not throw");
  } catch (const EventBusDestroyedError& error) {
    CHECK(error.operation() == "off");
  }
}

TEST_CASE("a callable lives as long as a run may call it", "[S-REG-16]") {
  Gate gate;
  std::atomic<bool> alive_in_second = false;
  std::weak_ptr<int> watched;
  {
    EventBus bus("CallableLifetime");
    const OpenAtExit open(gate);
    bus.on<OffEvent>([&](const OffEvent&) { gate.wait(); });
    auto captured = std::make_shared<int>(5);
    watched = captured;
    std::optional<EventHandler> second =
        bus.on<OffEvent>([&, captured = std::move(captured)](const OffEvent&) { alive_in_second = *captured == 5; });
    const auto event = bus.emit(OffEvent{});
    REQUIRE(gate.wait_for_arrivals(1));
    bus.off(*second);
    second.reset();
    CHECK_FALSE(watched.expired());
    gate.open();
    event.wait();
    CHECK(alive_in_second);
    CHECK(event.event_results()[1].status() == EventResultStatus::completed);
  }
  CHECK(eventually([&] { return watched.expired(); }));
}

TEST_CASE("a coroutine's captures live while it is suspended", "[S-REG-16]") {
  Gate gate;
  std::atomic<bool> same = false;
  EventBus bus("CoroutineLifetime");
  EventBus side("CoroutineLifetimeSide");
  const OpenAtExit open(gate);
  side.on<OtherOffEvent>([&](const OtherOffEvent&) { gate.wait(); });
  auto captured = std::make_shared<std::string>("captured");
  std::optional<EventHandler> handler =
      bus.on<OffEvent>([&, captured = std::move(captured)](Event<OffEvent>) -> task<> {
        const auto child = side.emit(OtherOffEvent{});
        co_await child.wait_async();
        same = *captured == "captured";
      });
  const auto event = bus.emit(OffEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.off(*handler);
  handler.reset();
  bus.on<OffEvent>([](const OffEvent&) {});
  gate.open();
  event.wait();
  CHECK(same);
}

}  // namespace

// Invalid arguments: refused with ValidationError before anything changed: S-REG-9, S-EMIT-2, D-NAME-1.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct InputEvent {};

struct SharedCallable {
  void operator()(const InputEvent&) const {}
};

bool nothing_registered(const EventBus& bus) {
  return bus.handler_count() == 0 && bus.handlers().empty() && bus.handlers_by_key().empty();
}

TEST_CASE("empty callables are rejected", "[S-REG-9]") {
  EventBus bus("EmptyCallables");
  void (*const null_function)(const InputEvent&) = nullptr;
  void (*const null_untyped)(BaseEvent) = nullptr;
  const std::function<void(const InputEvent&)> empty_function;
  const std::function<void(BaseEvent)> empty_untyped;
  const std::shared_ptr<SharedCallable> null_shared;
  CHECK_THROWS_AS(bus.on<InputEvent>(null_function), ValidationError);
  CHECK_THROWS_AS(bus.on(null_function), ValidationError);
  CHECK_THROWS_AS(bus.on("InputEvent", null_function), ValidationError);
  CHECK_THROWS_AS(bus.on("*", null_untyped), ValidationError);
  CHECK_THROWS_AS(bus.on<InputEvent>(empty_function), ValidationError);
  CHECK_THROWS_AS(bus.on<InputEvent>(std::function<void(const InputEvent&)>()), ValidationError);
  CHECK_THROWS_AS(bus.on("*", empty_untyped), ValidationError);
  CHECK_THROWS_AS(bus.on<InputEvent>(null_shared), ValidationError);
  CHECK_THROWS_AS(bus.on("InputEvent", null_shared), ValidationError);
  CHECK(nothing_registered(bus));
}

TEST_CASE("an empty pattern is rejected", "[S-REG-9]") {
  EventBus bus("EmptyPattern");
  CHECK_THROWS_AS(bus.on("", [](BaseEvent) {}), ValidationError);
  CHECK_THROWS_AS(bus.on(std::string(), [](BaseEvent) {}), ValidationError);
  CHECK_THROWS_AS(bus.on(std::string_view(), [](const InputEvent&) {}), ValidationError);
  CHECK(nothing_registered(bus));
}

TEST_CASE("negative handler timeouts are rejected by name", "[S-REG-9]") {
  const CapturedLog log;
  EventBus bus("NegativeHandler");
  const auto message = [&](HandlerOptions options) {
    return message_of<ValidationError>([&] { return bus.on<InputEvent>([](const InputEvent&) {}, options); });
  };
  using abxbus::test::contains;
  CHECK_THAT(message({.handler_timeout = -1s}), contains("handler_timeout must be >= 0 or null"));
  CHECK_THAT(message({.handler_timeout = Seconds(-0.001)}), contains("handler_timeout must be >= 0 or null"));
  CHECK_THAT(message({.handler_slow_timeout = -1ms}), contains("handler_slow_timeout must be >= 0 or null"));
  CHECK_THAT(message({.id = "given", .handler_slow_timeout = -1ms}),
             contains("handler_slow_timeout must be >= 0 or null"));
  CHECK(nothing_registered(bus));
  CHECK(log.lines().empty());
}

TEST_CASE("a rejected registration does not replace one of the same id", "[S-REG-9]") {
  EventBus bus("RejectedReplacement");
  bus.on<InputEvent>([](const InputEvent&) { return 1; }, {.id = "kept", .handler_name = "original"});
  CHECK_THROWS_AS(bus.on<InputEvent>([](const InputEvent&) { return 2; }, {.id = "kept", .handler_timeout = -1s}),
                  ValidationError);
  CHECK_THROWS_AS(bus.on<InputEvent>(std::function<void(const InputEvent&)>(), {.id = "kept"}), ValidationError);
  CHECK(bus.handler("kept")->handler_name() == "original");
  CHECK(bus.emit(InputEvent{}).event_result<int>() == 1);
}

TEST_CASE("a handler's timeouts cannot be set negative", "[S-REG-9]") {
  EventBus bus("NegativeSetters");
  const EventHandler handler =
      bus.on<InputEvent>([](const InputEvent&) {}, {.handler_timeout = 2s, .handler_slow_timeout = 3s});
  CHECK_THROWS_AS(handler.set_handler_timeout(-1s), ValidationError);
  CHECK_THROWS_AS(handler.set_handler_slow_timeout(-1ms), ValidationError);
  CHECK(handler.handler_timeout() == Seconds(2));
  CHECK(handler.handler_slow_timeout() == Seconds(3));
  handler.set_handler_timeout(0s);
  handler.set_handler_slow_timeout(std::nullopt);
  CHECK(handler.handler_timeout() == Seconds(0));
  CHECK(handler.handler_slow_timeout() == std::nullopt);
}

TEST_CASE("event types that are no identifiers are rejected", "[S-EMIT-2][D-NAME-1]") {
  EventBus bus("BadEventTypes");
  for (const std::string type : {"_x", "1a", "a b", "a-b", "a.b", "*", " a", "a\n", "a#b"}) {
    CAPTURE(type);
    CHECK_THROWS_AS(BaseEvent::make(type), ValidationError);
    CHECK_THROWS_AS(make_event(InputEvent{}, {.event_type = type}), ValidationError);
    CHECK_THROWS_AS(bus.emit(InputEvent{}, {.event_type = type}), ValidationError);
  }
  CHECK_THROWS_AS(BaseEvent::make(""), ValidationError);
  CHECK_THROWS_AS(BaseEvent::make(std::string(65, 'x')), ValidationError);
  CHECK(bus.event_history().size() == 0);
  CHECK(bus.is_idle_and_queue_empty());
}

TEST_CASE("event types that are identifiers are accepted, up to 64 code points", "[S-EMIT-2][D-NAME-1]") {
  EventBus bus("GoodEventTypes");
  std::string umlauts;
  for (int i = 0; i < 64; ++i) umlauts += "\xC3\xA4";
  for (const std::string& type : {std::string("A"), std::string("a_1"), std::string(64, 'x'), umlauts}) {
    CAPTURE(type);
    const BaseEvent event = bus.emit(BaseEvent::make(type));
    CHECK(event.wait().event_type() == type);
  }
  CHECK_THROWS_AS(BaseEvent::make(umlauts + "x"), ValidationError);
}

TEST_CASE("negative event durations are rejected by name", "[S-EMIT-2][S-EMIT-4]") {
  EventBus bus("NegativeEvent");
  using abxbus::test::contains;
  const auto check = [&](const EventOptions& options, const std::string& field) {
    CAPTURE(field);
    const std::string text = field + " must be >= 0 or null";
    CHECK_THAT(message_of<ValidationError>([&] { return make_event(InputEvent{}, options); }), contains(text));
    CHECK_THAT(message_of<ValidationError>([&] { return BaseEvent::make("Untyped", {}, options); }), contains(text));
    CHECK_THAT(message_of<ValidationError>([&] { return bus.emit(InputEvent{}, options); }), contains(text));
  };
  check({.event_timeout = -1s}, "event_timeout");
  check({.event_slow_timeout = -1ms}, "event_slow_timeout");
  check({.event_handler_timeout = Seconds(-0.25)}, "event_handler_timeout");
  check({.event_handler_slow_timeout = -1s}, "event_handler_slow_timeout");
  CHECK(bus.event_history().size() == 0);
}

TEST_CASE("an event's durations cannot be set negative", "[S-EMIT-2]") {
  const auto event = make_event(InputEvent{}, {.event_timeout = 2s, .event_handler_timeout = 3s});
  CHECK_THROWS_AS(event.set_event_timeout(-1s), ValidationError);
  CHECK_THROWS_AS(event.set_event_slow_timeout(-1s), ValidationError);
  CHECK_THROWS_AS(event.set_event_handler_timeout(-1s), ValidationError);
  CHECK_THROWS_AS(event.set_event_handler_slow_timeout(-1s), ValidationError);
  CHECK(event.event_timeout() == Seconds(2));
  CHECK(event.event_slow_timeout() == std::nullopt);
  CHECK(event.event_handler_timeout() == Seconds(3));
  CHECK(event.event_handler_slow_timeout() == std::nullopt);
}

TEST_CASE("malformed event ids are rejected", "[S-EMIT-2]") {
  for (const std::string id : {"", "zzz", "018f8e40123470008000000000001234", "018f8e40-1234-7000-8000-00000000123g"}) {
    CAPTURE(id);
    CHECK_THROWS_AS(Uuid::parse(id), ValidationError);
  }
  EventBus bus("GivenEventId");
  const auto event = bus.emit(InputEvent{}, {.event_id = Uuid::parse("018F8E40-1234-7000-8000-00000000ABCD")});
  CHECK(event.event_id().str() == "018f8e40-1234-7000-8000-00000000abcd");
  event.wait();
}

TEST_CASE("validation errors name the field", "[S-BUS-3][S-REG-9]") {
  EventBus bus("NamedFields");
  const auto field = [](auto call) -> std::string {
    try {
      call();
    } catch (const ValidationError& error) {
      return std::string(error.field());
    }
    return "no error";
  };
  CHECK(field([] { EventBus rejected("Rejected", {.event_timeout = -1s}); }) == "event_timeout");
  CHECK(field([] { EventBus rejected("Rejected", {.event_slow_timeout = -1s}); }) == "event_slow_timeout");
  CHECK(field([&] { bus.on<InputEvent>([](const InputEvent&) {}, {.handler_timeout = -1s}); }) == "handler_timeout");
  CHECK(field([&] { bus.emit(InputEvent{}, {.event_timeout = -1s}); }) == "event_timeout");
}

}  // namespace

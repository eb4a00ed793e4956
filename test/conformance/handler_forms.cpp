// What may be registered and what it may return: S-REG-10.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct FormEvent {
  int number = 0;
};
struct ChildForm {};

int by_payload(const FormEvent& event) {
  return event.number + 1;
}
int by_event(Event<FormEvent> event) {
  return event->number + 2;
}
int by_base(BaseEvent event) {
  return event.event_type() == "FormEvent" ? 3 : 0;
}
int with_token(const FormEvent& event, std::stop_token token) {
  return token.stop_possible() && !token.stop_requested() ? event.number + 4 : 0;
}
task<int> coroutine(Event<FormEvent> event) {
  co_return event->number + 5;
}

struct Stock {
  int base = 0;
  int member(const FormEvent& event) { return base + event.number; }
  int const_member(const Event<FormEvent>& event) const { return base + event->number; }
  static int static_member(const FormEvent& event) { return event.number + 6; }
  int operator()(const FormEvent& event) const { return base + event.number; }
};

struct CountingFunctor {
  int calls = 0;
  int operator()(const FormEvent&) { return ++calls; }
};

/// The value of the single handler that `add` registers, for an event with number 100.
template <class R = int, class Add>
std::optional<R> value_of(const char* bus_name, Add&& add) {
  EventBus bus(bus_name);
  add(bus);
  const auto event = bus.emit(FormEvent{100});
  event.wait();
  const EventResults results = event.event_results();
  if (results.size() != 1 || results[0].status() != EventResultStatus::completed) return std::nullopt;
  return results[0].result_as<R>();
}

TEST_CASE("functions are handlers", "[S-REG-10]") {
  CHECK(value_of("FormFunction", [](EventBus& bus) { bus.on<FormEvent>(&by_payload); }) == 101);
  CHECK(value_of("FormFunctionName", [](EventBus& bus) { bus.on<FormEvent>(by_payload); }) == 101);
  CHECK(value_of("FormFunctionDeduced", [](EventBus& bus) { bus.on(&by_event); }) == 102);
  CHECK(value_of("FormFunctionBase", [](EventBus& bus) { bus.on("FormEvent", &by_base); }) == 3);
  CHECK(value_of("FormFunctionToken", [](EventBus& bus) { bus.on<FormEvent>(&with_token); }) == 104);
  CHECK(value_of("FormCoroutine", [](EventBus& bus) { bus.on<FormEvent>(&coroutine); }) == 105);
  CHECK(value_of("FormStatic", [](EventBus& bus) { bus.on<FormEvent>(&Stock::static_member); }) == 106);
}

TEST_CASE("every parameter form works on a type, deduced, and by name", "[S-REG-10]") {
  EventBus bus("ParameterForms");
  const auto payload = [](const FormEvent& event) { return event.number; };
  const auto event = [](Event<FormEvent> each) { return each->number; };
  const auto event_ref = [](const Event<FormEvent>& each) { return (*each).number; };
  const auto base = [](BaseEvent each) { return each.payload_as<FormEvent>().number; };
  const auto base_ref = [](const BaseEvent& each) { return each.as<FormEvent>().value()->number; };
  const auto payload_token = [](const FormEvent& each, std::stop_token) { return each.number; };
  const auto event_token = [](const Event<FormEvent>& each, std::stop_token) { return each->number; };
  const auto base_token = [](BaseEvent each, std::stop_token) { return each.payload_as<FormEvent>().number; };
  bus.on<FormEvent>(payload);
  bus.on<FormEvent>(event);
  bus.on<FormEvent>(event_ref);
  bus.on<FormEvent>(base);
  bus.on<FormEvent>(base_ref);
  bus.on<FormEvent>(payload_token);
  bus.on<FormEvent>(event_token);
  bus.on<FormEvent>(base_token);
  bus.on(payload);
  bus.on(event);
  bus.on(event_ref);
  bus.on(payload_token);
  bus.on("FormEvent", payload);
  bus.on("FormEvent", event_token);
  bus.on("FormEvent", base);
  bus.on("*", base_ref);
  bus.on("*", base_token);
  bus.on("*", payload);
  const auto emitted = bus.emit(FormEvent{42});
  emitted.wait();
  int right = 0;
  for (const EventResult& result : emitted.event_results()) right += result.result_as<int>() == 42 ? 1 : 0;
  CHECK(right == 18);
}

TEST_CASE("a handler that accepts several forms gets the typed event", "[S-REG-10]") {
  const auto generic = [](auto event) -> bool { return std::is_same_v<decltype(event), Event<FormEvent>>; };
  CHECK(value_of<bool>("FormGeneric", [&](EventBus& bus) { bus.on<FormEvent>(generic); }) == true);
  const auto untyped = [](auto event) -> bool { return std::is_same_v<decltype(event), BaseEvent>; };
  CHECK(value_of<bool>("FormGenericUntyped", [&](EventBus& bus) { bus.on("FormEvent", untyped); }) == true);
}

TEST_CASE("objects are handlers: bound members, functors, std::function, shared callables", "[S-REG-10]") {
  Stock stock{1000};
  CHECK(value_of("FormBound", [&](EventBus& bus) { bus.on<FormEvent>(std::bind_front(&Stock::member, &stock)); }) ==
        1100);
  CHECK(value_of("FormBoundConst",
                 [&](EventBus& bus) { bus.on<FormEvent>(std::bind_front(&Stock::const_member, &stock)); }) == 1100);
  CHECK(value_of("FormFunctor", [&](EventBus& bus) { bus.on<FormEvent>(stock); }) == 1100);
  CHECK(value_of("FormStdFunction",
                 [&](EventBus& bus) { bus.on<FormEvent>(std::function<int(const FormEvent&)>(stock)); }) == 1100);
  CHECK(value_of("FormShared", [&](EventBus& bus) { bus.on<FormEvent>(std::make_shared<Stock>(stock)); }) == 1100);
}

TEST_CASE("captures: move-only, large, mutable", "[S-REG-10]") {
  EventBus bus("FormCaptures");
  auto owned = std::make_unique<int>(7);
  std::vector<std::string> large(3, std::string(100, 'x'));
  bus.on<FormEvent>([owned = std::move(owned)](const FormEvent&) { return *owned; });
  bus.on<FormEvent>([large, more = large, count = 0](const FormEvent&) mutable {
    return ++count * 10 + static_cast<int>(large.size() + more.size());
  });
  bus.on<FormEvent>(CountingFunctor{});
  bus.emit(FormEvent{}).wait();
  const auto second = bus.emit(FormEvent{});
  second.wait();
  CHECK(second.event_results()[0].result_as<int>() == 7);
  CHECK(second.event_results()[1].result_as<int>() == 26);
  CHECK(second.event_results()[2].result_as<int>() == 2);
}

TEST_CASE("plain and coroutine handlers mix on one event, each value is its handler's result", "[S-REG-10]") {
  Recorder order;
  EventBus bus("FormMixed");
  EventBus side("FormMixedSide");
  bus.on<FormEvent>([&](const FormEvent&) {
    order.add("plain");
    return std::string("plain");
  });
  bus.on<FormEvent>([&](Event<FormEvent>) -> task<std::string> {
    const auto child = side.emit(ChildForm{});
    co_await child.wait_async();
    order.add("coroutine");
    co_return "coroutine";
  });
  bus.on<FormEvent>([&](BaseEvent) { order.add("void"); });
  bus.on<FormEvent>([&](BaseEvent) -> task<> {
    order.add("void coroutine");
    co_return;
  });
  const auto event = bus.emit(FormEvent{});
  event.wait();
  CHECK(order.notes() == std::vector<std::string>{"plain", "coroutine", "void", "void coroutine"});
  const EventResults results = event.event_results();
  REQUIRE(results.size() == 4);
  for (const EventResult& result : results) CHECK(result.status() == EventResultStatus::completed);
  CHECK(results[0].result_as<std::string>() == "plain");
  CHECK(results[1].result_as<std::string>() == "coroutine");
  CHECK(results[2].result_as<std::string>() == std::nullopt);
  CHECK(results[3].result_as<std::string>() == std::nullopt);
}

TEST_CASE("what a handler may return", "[S-REG-10]") {
  using Strings = std::vector<std::string>;
  CHECK(value_of<int>("ReturnInt", [](EventBus& bus) { bus.on<FormEvent>([](BaseEvent) { return 0; }); }) == 0);
  CHECK(value_of<bool>("ReturnBool", [](EventBus& bus) { bus.on<FormEvent>([](BaseEvent) { return false; }); }) ==
        false);
  CHECK(value_of<double>("ReturnDouble", [](EventBus& bus) { bus.on<FormEvent>([](BaseEvent) { return 0.5; }); }) ==
        0.5);
  CHECK(value_of<std::string>(
            "ReturnText", [](EventBus& bus) { bus.on<FormEvent>([](BaseEvent) { return "literal"; }); }) == "literal");
  CHECK(value_of<Strings>("ReturnList", [](EventBus& bus) {
          bus.on<FormEvent>([](BaseEvent) { return Strings{"a", "b"}; });
        }) == Strings{"a", "b"});
  CHECK(value_of<int>("ReturnOptional",
                      [](EventBus& bus) { bus.on<FormEvent>([](BaseEvent) { return std::optional<int>(9); }); }) == 9);
  CHECK(value_of<int>("ReturnTaskOptional", [](EventBus& bus) {
          bus.on<FormEvent>([](BaseEvent) -> task<std::optional<int>> { co_return 9; });
        }) == 9);
}

TEST_CASE("void, nothing and an empty optional yield null", "[S-REG-10]") {
  EventBus bus("ReturnNothing");
  bus.on<FormEvent>([](BaseEvent) {});
  bus.on<FormEvent>([](BaseEvent) { return std::optional<int>(); });
  bus.on<FormEvent>([](BaseEvent) { return nullptr; });
  bus.on<FormEvent>([](BaseEvent) { return std::nullopt; });
  bus.on<FormEvent>([](BaseEvent) { return std::monostate(); });
  bus.on<FormEvent>([](BaseEvent) { return std::exception_ptr(); });
  bus.on<FormEvent>([](BaseEvent) -> task<> { co_return; });
  const auto event = bus.emit(FormEvent{});
  event.wait();
  REQUIRE(event.event_results().size() == 7);
  for (const EventResult& result : event.event_results()) {
    CHECK(result.status() == EventResultStatus::completed);
    CHECK(result.result_as<int>() == std::nullopt);
    CHECK_FALSE(result.error());
    CHECK_FALSE(result.event_value());
  }
}

TEST_CASE("a returned exception is an error, a returned event an event result", "[S-REG-10]") {
  const CapturedLog log;
  EventBus bus("ReturnSpecial");
  bus.on<FormEvent>([](BaseEvent) { return std::make_exception_ptr(std::runtime_error("returned")); });
  bus.on<FormEvent>([](const Event<FormEvent>& event) { return event.emit(ChildForm{}); });
  bus.on<FormEvent>([](const Event<FormEvent>& event) -> task<BaseEvent> { co_return event.emit(ChildForm{}); });
  const auto event = bus.emit(FormEvent{});
  event.wait();
  const EventResults results = event.event_results();
  REQUIRE(results.size() == 3);
  CHECK(results[0].status() == EventResultStatus::error);
  CHECK(results[0].error_message() == "returned");
  CHECK(results[1].status() == EventResultStatus::completed);
  REQUIRE(results[1].event_value());
  CHECK(results[1].event_value()->event_type() == "ChildForm");
  REQUIRE(results[2].event_value());
  CHECK(results[2].event_value()->event_type() == "ChildForm");
  CHECK(bus.wait_until_idle());
}

}  // namespace

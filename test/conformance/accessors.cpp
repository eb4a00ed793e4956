// Result accessors on completed events: what is included, what is thrown, in which order.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Ask {
  using event_result_type = std::string;
  int n = 0;
};
struct Part {};
struct Number {};
using Text = std::optional<std::string>;
using List = std::vector<Text>;
using Texts = std::vector<std::string>;
using Options = ResultOptions<std::string>;

constexpr auto parallel_handlers = EventHandlerConcurrency::parallel;
const auto everything = [](const Text&, const EventResult&) { return true; };

/// A bus whose handlers answer as their texts say: "null", "error:<text>", "event", else the text itself.
class Answers {
 public:
  Answers(std::string_view name, const Texts& answers) : bus_(name) {
    for (const auto& answer : answers) {
      if (answer == "null") {
        bus_.on<Ask>([](const Ask&) {}, {.handler_name = answer});
      } else if (answer == "event") {
        bus_.on<Ask>([](const Event<Ask>& event) { return event.emit(Part{}); }, {.handler_name = answer});
      } else if (answer.rfind("error:", 0) == 0) {
        bus_.on<Ask>([text = answer.substr(6)](const Ask&) { throw Error(text); }, {.handler_name = "error"});
      } else {
        bus_.on<Ask>([answer](const Ask&) { return answer; }, {.handler_name = answer});
      }
    }
  }
  Event<Ask> done() const { return bus_.emit(Ask{}).wait(); }

 private:
  EventBus bus_;
};

}  // namespace

TEST_CASE("the four accessors and their types", "[T-RES-1]") {
  const Answers answers("ResFour", {"one", "null", "two"});
  const auto event = answers.done();
  STATIC_REQUIRE(std::is_same_v<decltype(event.event_result()), Text>);
  STATIC_REQUIRE(std::is_same_v<decltype(event.event_results_list()), List>);
  CHECK(event.event_result() == "one");
  CHECK(event.event_results_list() == List{"one", "two"});
  const auto results = event.event_results();
  REQUIRE(results.size() == 3);
  CHECK(results.contains(results[1].handler_id()));
  CHECK(results.at(results[1].handler_id()) == results[1]);
  CHECK_FALSE(results.contains("no id"));
  CHECK_THROWS_AS(results.at("no id"), std::out_of_range);
  CHECK(event.event_errors().empty());
}

TEST_CASE("event_errors lists errors in completion order and never waits", "[T-RES-1]") {
  Gate first, second;
  EventBus bus("ResErrors", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(first, second);
  bus.on<Ask>([&](const Ask&) {
    first.wait();
    throw Error("registered first");
  });
  bus.on<Ask>([](const Ask&) { return "fine"; });
  bus.on<Ask>([&](const Ask&) {
    second.wait();
    throw Error("registered last");
  });
  const auto event = bus.emit(Ask{});
  REQUIRE(second.wait_for_arrivals(1));
  CHECK(event.event_errors().empty());
  second.open();
  REQUIRE(eventually([&] { return event.event_errors().size() == 1; }));
  first.open();
  event.wait();
  const auto errors = event.event_errors();
  REQUIRE(errors.size() == 2);
  CHECK(error_message(errors[0]) == "registered last");
  CHECK(error_message(errors[1]) == "registered first");
}

TEST_CASE("one option set leaves the others at their defaults", "[T-RES-2]") {
  const Options defaults;
  CHECK_FALSE(static_cast<bool>(defaults.include));
  CHECK(defaults.raise_if_any);
  CHECK_FALSE(defaults.raise_if_none);
  CHECK(defaults.wait);
  const Answers failing("ResOneOption", {"error:broken", "value"});
  const auto event = failing.done();
  CHECK_THROWS_AS(event.event_result({.include = everything}), Error);
  CHECK_THROWS_AS(event.event_result({.raise_if_none = true}), Error);
  CHECK_THROWS_AS(event.event_result({.wait = false}), Error);
  CHECK(event.event_result({.raise_if_any = false}) == "value");
}

TEST_CASE("the predicate sees value and result, once each, in order", "[T-RES-3]") {
  const Answers answers("ResPredicate", {"one", "null", "error:broken", "event", "two"});
  const auto event = answers.done();
  Texts seen;
  const auto note = [&](const Text& value, const EventResult& result) {
    seen.push_back(result.handler_name() + "=" + value.value_or("-"));
    return result.handler_name() == "two";
  };
  CHECK(event.event_results_list({.include = note, .raise_if_any = false}) == List{"two"});
  CHECK(seen == Texts{"one=one", "null=-", "error=-", "event=-", "two=two"});
  seen.clear();
  CHECK(event.event_result({.include = note, .raise_if_any = false}) == "two");
  CHECK(seen == Texts{"one=one", "null=-", "error=-", "event=-", "two=two"});
}

TEST_CASE("the default filter takes usable values, falsy ones included", "[T-RES-4]") {
  EventBus bus("ResFalsy");
  bus.on<Number>([](const Number&) {});
  bus.on<Number>([](const Event<Number>& event) { return event.emit(Part{}); });
  bus.on<Number>([](const Number&) { return 0; });
  bus.on<Number>([](const Number&) { return 5; });
  const auto numbers = bus.emit(Number{}).wait();
  CHECK(numbers.event_result<int>() == 0);
  CHECK(numbers.event_results_list<int>() == std::vector<std::optional<int>>{0, 5});
  const Answers texts("ResFalsyText", {"null", "", "late"});
  CHECK(texts.done().event_result() == "");
}

TEST_CASE("errors of all buses are collected before anything is filtered", "[T-RES-5]") {
  const Answers one("ResSingle", {"value", "error:broken"});
  const auto single = one.done();
  const auto error = thrown_by([&] { single.event_result({.include = everything}); });
  CHECK(error_type_name(error) == "Error");
  CHECK(error == single.event_errors()[0]);

  Gate gate;
  EventBus first("ResBusOne"), second("ResBusTwo");
  const OpenAtEnd open(gate);
  first.on<Ask>([&](const Ask&) {
    gate.wait();
    throw Error("on one");
  });
  second.on<Ask>([](const Ask&) { throw std::runtime_error("on two"); });
  const auto event = first.emit(Ask{});
  second.emit(event);
  gate.open();
  event.wait();
  const auto both = thrown_by([&] { event.event_results_list(); });
  REQUIRE(error_as<EventHandlerErrors>(both) != nullptr);
  CHECK(error_message(both) == "Event " + event_label(event) + " had 2 handler error(s): on one; on two");
  CHECK(error_as<EventHandlerErrors>(both)->errors().size() == 2);

  const Answers none("ResNoneText", {"null"});
  const auto empty = none.done();
  const auto nothing = thrown_by([&] { empty.event_result({.raise_if_none = true}); });
  const auto* none_error = error_as<EventResultNoneError>(nothing);
  REQUIRE(none_error != nullptr);
  CHECK(std::string(none_error->what()) ==
        "Expected at least one handler to return a non-null result, but none did: " + event_label(empty));
  CHECK(none_error->event_type() == "Ask");
  CHECK(none_error->event_id() == empty.event_id());
}

TEST_CASE("raise_if_any goes before raise_if_none", "[T-RES-6]") {
  const Answers failing("ResAllFailed", {"error:a", "error:b"});
  const auto event = failing.done();
  const auto thrown = [&](bool any, bool none) {
    const Options options{.raise_if_any = any, .raise_if_none = none};
    const auto first = error_name(thrown_by([&] { event.event_result(options); }));
    const auto list = error_name(thrown_by([&] { event.event_results_list(options); }));
    return first == list ? first : first + " but " + list;
  };
  CHECK(thrown(true, false) == "EventHandlerErrors");
  CHECK(thrown(true, true) == "EventHandlerErrors");
  CHECK(thrown(false, true) == "EventResultNoneError");
  CHECK(thrown(false, false) == "");
  CHECK_FALSE(event.event_result({.raise_if_any = false}).has_value());
  CHECK(event.event_results_list({.raise_if_any = false}).empty());
  const auto several = thrown_by([&] { event.event_result(); });
  CHECK(error_as<EventHandlerErrors>(several)->errors().size() == 2);

  const Answers one("ResOneFailed", {"error:alone"});
  const auto alone = one.done();
  CHECK(error_name(thrown_by([&] { alone.event_result({.raise_if_none = true}); })) == "Error");
}

TEST_CASE("no handlers: nothing, or the none-error when asked for", "[T-RES-7]") {
  const Answers nobody("ResNobody", {});
  const auto event = nobody.done();
  CHECK_FALSE(event.event_result().has_value());
  CHECK(event.event_results_list().empty());
  CHECK_THROWS_AS(event.event_result({.raise_if_none = true}), EventResultNoneError);
  CHECK_THROWS_AS(event.event_results_list({.raise_if_none = true}), EventResultNoneError);

  const Answers with_null("ResWithNull", {"null", "value"});
  const auto mixed = with_null.done();
  CHECK(mixed.event_result({.raise_if_none = true}) == "value");
  const auto null_only = [](const Text& value, const EventResult&) { return !value.has_value(); };
  CHECK_FALSE(mixed.event_result({.include = null_only, .raise_if_none = true}).has_value());
}

TEST_CASE("cut short counts as failed", "[T-RES-8]") {
  Gate gate;
  EventBus bus("ResCut");
  const OpenAtEnd open(gate);
  bus.on<Ask>([](const Ask&) { return "value"; });
  bus.on<Ask>([&](const Ask& ask) {
    if (ask.n == 1) gate.wait();
  });
  const auto late = bus.emit(Ask{1}, {.event_timeout = 0.15s}).wait();
  CHECK_THROWS_AS(late.event_result(), EventHandlerAbortedError);
  CHECK(late.event_result({.raise_if_any = false}) == "value");
  const auto lost = bus.emit(Ask{2}, {.event_handler_completion = EventHandlerCompletion::first}).wait();
  CHECK_THROWS_AS(lost.event_results_list(), EventHandlerCancelledError);
  CHECK(lost.event_results_list({.raise_if_any = false}) == List{"value"});
}

TEST_CASE("raise_if_any = false ignores errors", "[T-RES-9]") {
  const Answers valid("ResErrorValid", {"error:broken", "valid"});
  const Answers null("ResErrorNull", {"error:broken", "null"});
  CHECK(valid.done().event_result({.raise_if_any = false}) == "valid");
  CHECK_FALSE(null.done().event_result({.raise_if_any = false}).has_value());
}

TEST_CASE("results are in registration order, not in completion order", "[T-RES-10]") {
  Gate null, winner;
  EventBus bus("ResOrder", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(null, winner);
  bus.on<Ask>([&](const Ask&) { null.wait(); });
  bus.on<Ask>([&](const Ask&) {
    winner.wait();
    return "winner";
  });
  bus.on<Ask>([](const Ask&) { return "late"; });
  const auto event = bus.emit(Ask{});
  CHECK(eventually([&] { return outcomes(event) == Texts{"started", "started", "completed"}; }));
  winner.open();
  CHECK(eventually([&] { return outcomes(event) == Texts{"started", "completed", "completed"}; }));
  null.open();
  event.wait();
  CHECK(event.event_result() == "winner");
  CHECK(event.event_results_list() == List{"winner", "late"});
  CHECK(event.event_results_list({.include = everything}) == List{std::nullopt, "winner", "late"});
}

TEST_CASE("accessors go by registration time, the snapshot by creation", "[T-RES-10][T-RES-11]") {
  EventBus bus("ResTimes");
  const auto at = [](int second) {
    return Timestamp::parse("2024-01-01T00:00:0" + std::to_string(second) + ".000000000Z");
  };
  bus.on("*", [](BaseEvent) { return std::string("any 1"); }, {.handler_registered_at = at(1)});
  bus.on<Ask>([](const Ask&) { return "typed 5"; }, {.handler_registered_at = at(5)});
  bus.on<Ask>([](const Ask&) { return "typed 2"; }, {.handler_registered_at = at(2)});
  bus.on("*", [](BaseEvent) { return std::string("any 2"); }, {.handler_registered_at = at(2)});
  bus.on("Ask", [](BaseEvent) { return std::string("named 4"); }, {.handler_registered_at = at(4)});
  const auto event = bus.emit(Ask{}).wait();
  Texts created;
  for (const auto& result : event.event_results()) created.push_back(*result.result_as<std::string>());
  CHECK(created == Texts{"typed 5", "typed 2", "named 4", "any 1", "any 2"});
  CHECK(event.event_results_list() == List{"any 1", "typed 2", "any 2", "named 4", "typed 5"});
  CHECK(event.event_result() == "any 1");
}

TEST_CASE("a filter may admit results without a value, they read as nothing", "[T-RES-12]") {
  const Answers nulls("ResAdmitNull", {"first", "null", "second"});
  const auto settled = [](const Text&, const EventResult& result) {
    return result.status() == EventResultStatus::completed && !result.error();
  };
  CHECK(nulls.done().event_results_list({.include = settled}) == List{"first", std::nullopt, "second"});
  const Answers mixed("ResAdmitAll", {"error:broken", "event", "null", "value"});
  const auto event = mixed.done();
  CHECK(event.event_results_list({.include = everything, .raise_if_any = false}) ==
        List{std::nullopt, std::nullopt, std::nullopt, "value"});
  CHECK(event.event_results()[1].event_value().has_value());
}

TEST_CASE("accessors change nothing", "[T-RES-13]") {
  const Answers answers("ResAgain", {"one", "two"});
  const auto event = answers.done();
  const auto nothing = [](const Text&, const EventResult&) { return false; };
  for (int n = 0; n < 3; ++n) {
    CHECK(event.event_result() == "one");
    CHECK(event.event_results_list() == List{"one", "two"});
    CHECK_FALSE(event.event_result({.include = nothing}).has_value());
    CHECK(event.event_results_list({.include = nothing}).empty());
    CHECK_THROWS_AS(event.event_result({.include = nothing, .raise_if_none = true}), EventResultNoneError);
  }
}

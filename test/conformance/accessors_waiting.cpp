// When result accessors wait, and for what.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Ask {
  using event_result_type = std::string;
  int n = 0;
};
struct Outer {
  int n = 0;
};
using Text = std::optional<std::string>;
using List = std::vector<Text>;
using Texts = std::vector<std::string>;
using Options = ResultOptions<std::string>;
constexpr auto parallel_handlers = EventHandlerConcurrency::parallel;

std::string joined(const List& list) {
  std::string text;
  for (const auto& each : list) text += (text.empty() ? "" : ",") + each.value_or("null");
  return text;
}

template <class T>
concept has_timeout = requires(T options) {
  options.timeout;
};

}  // namespace

TEST_CASE("a completed event is judged at once", "[T-RES-20]") {
  Gate gate;
  EventBus bus("AccCompleted");
  const OpenAtEnd open(gate);
  bus.on<Ask>([&](const Ask& ask) {
    if (ask.n == 2) gate.wait();
    return "value";
  });
  const auto event = bus.emit(Ask{1}).wait();
  bus.emit(Ask{2});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(event.event_result() == "value");
  CHECK(event.event_results_list() == List{"value"});
}

TEST_CASE("a pending event is executed at once, ahead of the queue", "[T-RES-21]") {
  Gate gate;
  EventBus bus("AccPending");
  const OpenAtEnd open(gate);
  Recorder order;
  bus.on<Ask>([&](const Ask& ask) {
    order.add(std::to_string(ask.n));
    if (ask.n == 1) gate.wait();
    return std::to_string(ask.n);
  });
  const auto blocker = bus.emit(Ask{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Ask{2});
  const auto first = bus.emit(Ask{3});
  const auto list = bus.emit(Ask{4});
  CHECK(first.event_result() == "3");
  CHECK(list.event_results_list() == List{"4"});
  CHECK(first.event_status() == EventStatus::completed);
  CHECK(queued.event_status() == EventStatus::pending);
  CHECK(outcomes(blocker) == Texts{"started"});
  gate.open();
  queued.wait();
  CHECK(order.notes() == Texts{"1", "3", "4", "2"});
}

TEST_CASE("event_result of a pending event returns with the first value, the list with all", "[T-RES-21]") {
  Gate gate;
  EventBus bus("AccFirst", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(gate);
  bus.on<Ask>([&](const Ask&) {
    gate.wait();
    return "slow";
  });
  bus.on<Ask>([&](const Ask&) {
    gate.wait_for_arrivals(1);
    return "quick";
  });
  const auto event = bus.emit(Ask{});
  CHECK(event.event_result() == "quick");
  CHECK(outcomes(event) == Texts{"started", "completed"});
  gate.open();
  CHECK(event.event_results_list() == List{"slow", "quick"});
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(bus.emit(Ask{}).event_results_list() == List{"slow", "quick"});
}

TEST_CASE("an accessor called by the emitting handler makes the child a blocking one", "[T-RES-21]") {
  EventBus bus("AccBlocking");
  bus.on<Ask>([](const Ask& ask) { return std::to_string(ask.n); });
  bus.on<Outer>([](const Event<Outer>& event) {
    const auto first = event.emit(Ask{1}), list = event.emit(Ask{2});
    event.emit(Ask{3});
    return first.event_result().value_or("-") + joined(list.event_results_list());
  });
  const auto event = bus.emit(Outer{}).wait();
  CHECK(event.event_results()[0].result_as<std::string>() == "12");
  const auto children = event.event_children();
  REQUIRE(children.size() == 3);
  CHECK(children[0].event_blocks_parent_completion());
  CHECK(children[1].event_blocks_parent_completion());
  CHECK_FALSE(children[2].event_blocks_parent_completion());
}

TEST_CASE("on a started event accessors wait: for a usable value, or for the end", "[T-RES-22]") {
  Gate never, quick;
  EventBus bus("AccStarted", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(never, quick);
  bus.on<Ask>([&](const Ask&) {
    never.wait();
    return "slow";
  });
  bus.on<Ask>([](const Ask&) {});
  bus.on<Ask>([&](const Ask&) {
    quick.wait();
    return "quick";
  });
  const auto event = bus.emit(Ask{});
  REQUIRE(never.wait_for_arrivals(1));
  REQUIRE(quick.wait_for_arrivals(1));
  Recorder got;
  {
    const std::jthread first([&] { got.add(event.event_result().value_or("nothing")); });
    const std::jthread list([&] { got.add(joined(event.event_results_list())); });
    std::this_thread::sleep_for(40ms);
    CHECK(got.size() == 0);
    quick.open();
    CHECK(got.wait_for_size(1));
    std::this_thread::sleep_for(30ms);
    CHECK(got.notes() == Texts{"quick"});
    CHECK(event.event_status() == EventStatus::started);
    never.open();
  }
  CHECK(got.notes() == Texts{"quick", "slow,quick"});
}

TEST_CASE("event_result of a started event without a usable value lasts until the end", "[T-RES-22]") {
  Gate gate;
  EventBus bus("AccNoValue");
  const OpenAtEnd open(gate);
  bus.on<Ask>([](const Ask&) { throw Error("no value"); });
  bus.on<Ask>([&](const Ask&) { gate.wait(); });
  const auto event = bus.emit(Ask{});
  REQUIRE(gate.wait_for_arrivals(1));
  Recorder got;
  {
    const std::jthread first([&] { got.add(event.event_result({.raise_if_any = false}).value_or("nothing")); });
    std::this_thread::sleep_for(40ms);
    CHECK(got.size() == 0);
    gate.open();
  }
  CHECK(got.notes() == Texts{"nothing"});
}

TEST_CASE("after a first-result wait both accessors judge what is there", "[T-RES-23]") {
  Gate medium, slow;
  EventBus bus("AccAfterFirst", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(medium, slow);
  bus.on<Ask>([&](const Ask&) {
    medium.wait();
    return "medium";
  });
  bus.on<Ask>([](const Ask&) { return "fast"; });
  bus.on<Ask>([&](const Ask&) {
    slow.wait();
    return "slow";
  });
  const auto event = bus.emit(Ask{});
  Recorder early;
  {
    REQUIRE(slow.wait_for_arrivals(1));
    // Waits already: somebody else's first-result wait does not cut it short.
    Gate entered;
    const std::jthread waiting([&] {
      entered.open();
      early.add(joined(event.event_results_list()));
    });
    CHECK(entered.wait());
    std::this_thread::sleep_for(50ms);
    event.now({.first_result = true});
    CHECK(event.event_result() == "fast");
    CHECK(event.event_results_list() == List{"fast"});
    medium.open();
    CHECK(eventually([&] { return outcomes(event)[0] == "completed"; }));
    CHECK(event.event_results_list() == List{"medium", "fast"});
    CHECK(outcomes(event)[2] == "started");
    CHECK(event.event_status() == EventStatus::started);
    CHECK(early.size() == 0);
    slow.open();
  }
  CHECK(early.notes() == Texts{"medium,fast,slow"});
}

TEST_CASE("the implicit wait of event_result does not count as a first-result wait", "[T-RES-23]") {
  Gate slow;
  EventBus bus("AccImplicit", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(slow);
  bus.on<Ask>([](const Ask&) { return "fast"; });
  bus.on<Ask>([&](const Ask&) {
    slow.wait();
    return "slow";
  });
  const auto event = bus.emit(Ask{});
  CHECK(event.event_result() == "fast");
  Recorder got;
  {
    const std::jthread list([&] { got.add(joined(event.event_results_list())); });
    std::this_thread::sleep_for(40ms);
    CHECK(got.size() == 0);
    slow.open();
  }
  CHECK(got.notes() == Texts{"fast,slow"});
}

TEST_CASE("wait = false starts nothing and waits for nothing", "[T-RES-24]") {
  Gate gate;
  EventBus bus("AccNoWait");
  const OpenAtEnd open(gate);
  bus.on<Ask>([&](const Ask& ask) {
    if (ask.n == 1) gate.wait();
    return "value";
  });
  const Options no_wait{.wait = false};
  const auto running = bus.emit(Ask{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Ask{2});
  CHECK_FALSE(running.event_result(no_wait).has_value());
  CHECK(running.event_results_list(no_wait).empty());
  CHECK_FALSE(queued.event_result(no_wait).has_value());
  CHECK(queued.event_results_list(no_wait).empty());
  CHECK(queued.event_status() == EventStatus::pending);
  gate.open();
  queued.wait();
  CHECK(queued.event_result(no_wait) == "value");
}

TEST_CASE("the wait goes by the default filter, whatever is included afterwards", "[T-RES-25]") {
  Gate gate;
  EventBus bus("AccFilter", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(gate);
  bus.on<Ask>([](const Ask&) { return "first"; });
  bus.on<Ask>([&](const Ask&) {
    gate.wait();
    return "second";
  });
  const auto second_only = [](const Text& value, const EventResult&) { return value == "second"; };
  const auto event = bus.emit(Ask{});
  CHECK_FALSE(event.event_result({.include = second_only}).has_value());
  CHECK_THROWS_AS(event.event_result({.include = second_only, .raise_if_none = true}), EventResultNoneError);
  CHECK(outcomes(event) == Texts{"completed", "started"});
  gate.open();
  event.wait();
  CHECK(event.event_result({.include = second_only}) == "second");
}

TEST_CASE("first_result returns with a usable value or at the end, and cancels nothing", "[T-RES-26]") {
  Gate quick, slow;
  EventBus bus("AccFirstResult", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(quick, slow);
  bus.on<Ask>([](const Ask&) { throw Error("no value"); });
  bus.on<Ask>([](const Ask&) {});
  bus.on<Ask>([&](const Ask& ask) -> Text {
    quick.wait();
    return ask.n == 1 ? Text("quick") : std::nullopt;
  });
  bus.on<Ask>([&](const Ask& ask) -> Text {
    slow.wait();
    return ask.n == 1 ? Text("slow") : std::nullopt;
  });
  const auto event = bus.emit(Ask{1});
  CHECK(slow.wait_for_arrivals(1));
  CHECK_THROWS_AS(event.wait({.timeout = 40ms, .first_result = true}), TimeoutError);
  quick.open();
  CHECK(event.wait({.first_result = true}) == event);
  CHECK(event.now({.first_result = true}) == event);
  CHECK(outcomes(event) == Texts{"Error", "completed", "completed", "started"});
  slow.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"Error", "completed", "completed", "completed"});
  CHECK(event.event_results()[3].result_as<std::string>() == "slow");

  const auto valueless = bus.emit(Ask{2});
  CHECK(valueless.wait({.first_result = true}).event_status() == EventStatus::completed);
}

TEST_CASE("accessors need a bus", "[T-RES-27]") {
  const auto event = make_event(Ask{});
  const auto refusal = [](const std::exception_ptr& error) { return error_name(error) + ": " + error_message(error); };
  CHECK(refusal(thrown_by([&] { event.event_result(); })) == "ValidationError: event has no bus attached");
  CHECK(refusal(thrown_by([&] { event.event_results_list(); })) == "ValidationError: event has no bus attached");
  CHECK(event.event_results().empty());
  CHECK(event.event_errors().empty());
  CHECK(event.event_status() == EventStatus::pending);
}

TEST_CASE("accessors have no limit of their own, the wait before them has", "[T-RES-28]") {
  STATIC_REQUIRE(has_timeout<WaitOptions>);
  STATIC_REQUIRE_FALSE(has_timeout<Options>);
  Gate gate;
  EventBus bus("AccLimit");
  const OpenAtEnd open(gate);
  bus.on<Ask>([&](const Ask& ask) {
    if (ask.n == 1) gate.wait();
    return "value";
  });
  CHECK_THROWS_AS(bus.emit(Ask{1}).now({.timeout = 20ms}).event_result(), TimeoutError);
  gate.open();
  CHECK(bus.emit(Ask{2}).now({.timeout = patience}).event_result() == "value");
}

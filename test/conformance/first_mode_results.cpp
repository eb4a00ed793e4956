// Completion mode `first`, seen from the results.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Ask {
  int n = 0;
};
struct Part {};
using Texts = std::vector<std::string>;
constexpr auto parallel_handlers = EventHandlerConcurrency::parallel;
constexpr auto first = EventHandlerCompletion::first;
constexpr auto all = EventHandlerCompletion::all;

}  // namespace

TEST_CASE("the event's completion mode beats the bus's, all is the default", "[T-FST-1]") {
  EventBus plain("FstAll"), racing("FstFirst", {.event_handler_completion = first});
  for (EventBus* bus : {&plain, &racing}) {
    bus->on<Ask>([](const Ask&) { return 1; });
    bus->on<Ask>([](const Ask&) { return 2; });
  }
  const Texts both{"completed", "completed"}, one{"completed", "EventHandlerCancelledError"};
  CHECK(outcomes(plain.emit(Ask{}).now()) == both);
  CHECK(outcomes(plain.emit(Ask{}, {.event_handler_completion = first}).now()) == one);
  CHECK(outcomes(racing.emit(Ask{}).now()) == one);
  CHECK(outcomes(racing.emit(Ask{}, {.event_handler_completion = all}).now()) == both);
}

TEST_CASE("the winner is the first usable value", "[T-FST-2]") {
  EventBus serial("FstSerialWinner", {.event_handler_completion = first});
  serial.on<Ask>([](const Ask&) {});
  serial.on<Ask>([](const Ask&) { throw Error("no winner"); });
  serial.on<Ask>([](const Event<Ask>& event) { return event.emit(Part{}); });
  serial.on<Ask>([](const Ask&) { return false; });
  serial.on<Ask>([](const Ask&) { return true; });
  const auto in_order = serial.emit(Ask{}).now();
  CHECK(outcomes(in_order) == Texts{"completed", "Error", "completed", "completed", "EventHandlerCancelledError"});
  CHECK(in_order.event_result<bool>({.raise_if_any = false}) == false);
  for (int kind = 0; kind < 2; ++kind) {
    EventBus falsy("FstFalsy" + std::to_string(kind), {.event_handler_completion = first});
    if (kind == 0) {
      falsy.on<Ask>([](const Ask&) { return 0; });
    } else {
      falsy.on<Ask>([](const Ask&) { return ""; });
    }
    falsy.on<Ask>([](const Ask&) { return 1; });
    CHECK(outcomes(falsy.emit(Ask{}).now()) == Texts{"completed", "EventHandlerCancelledError"});
  }

  Gate gate, winner;
  EventBus parallel("FstParallelWinner",
                    {.event_handler_concurrency = parallel_handlers, .event_handler_completion = first});
  const OpenAtEnd open(gate, winner);
  parallel.on<Ask>([&](const Ask&) {
    gate.wait();
    return 1;
  });
  parallel.on<Ask>([](const Ask&) {});
  parallel.on<Ask>([&](const Ask&) {
    winner.wait();
    return 2;
  });
  const auto race = parallel.emit(Ask{});
  CHECK(gate.wait_for_arrivals(1));
  CHECK(eventually([&] { return outcomes(race) == Texts{"started", "completed", "started"}; }));
  winner.open();
  race.wait();
  CHECK(outcomes(race) == Texts{"EventHandlerAbortedError", "completed", "completed"});
  CHECK(race.event_result<int>({.raise_if_any = false}) == 2);
}

TEST_CASE("a winner cancels what waits, aborts what runs, leaves what is settled", "[T-FST-3]") {
  std::atomic<int> never{0};
  EventBus serial("FstSerialLosers", {.event_handler_completion = first});
  serial.on<Ask>([](const Ask&) { throw Error("settled"); });
  serial.on<Ask>([](const Ask&) { return 1; });
  serial.on<Ask>([&](const Ask&) { return ++never; });
  const auto cancelled = serial.emit(Ask{}).now();
  CHECK(outcomes(cancelled) == Texts{"Error", "completed", "EventHandlerCancelledError"});
  const auto pending = cancelled.event_results()[2];
  CHECK(pending.error_message() == "Cancelled: first result resolved");
  CHECK(pending.started_at().has_value());
  CHECK(pending.completed_at().has_value());
  CHECK(never == 0);

  Gate winner;
  std::atomic<int> stopped{0};
  EventBus parallel("FstParallelLosers",
                    {.event_handler_concurrency = parallel_handlers, .event_handler_completion = first});
  const OpenAtEnd open(winner);
  parallel.on<Ask>([&](const Ask&, std::stop_token token) {
    if (wait_until_stopped(token)) ++stopped;
    return 1;
  });
  parallel.on<Ask>([&](const Ask&) {
    winner.wait();
    return 2;
  });
  const auto race = parallel.emit(Ask{});
  CHECK(winner.wait_for_arrivals(1));
  CHECK(eventually([&] { return outcomes(race) == Texts{"started", "started"}; }));
  winner.open();
  race.wait();
  CHECK(outcomes(race) == Texts{"EventHandlerAbortedError", "completed"});
  CHECK(race.event_results()[0].error_message() == "Aborted: first result resolved");
  CHECK(eventually([&] { return stopped == 1; }));
}

TEST_CASE("a winner on one bus leaves the results of another alone", "[T-FST-3]") {
  Gate gate;
  EventBus racing("FstOneBus", {.event_handler_completion = first}), other("FstOtherBus");
  const OpenAtEnd open(gate);
  racing.on<Ask>([](const Ask&) { return 1; });
  racing.on<Ask>([](const Ask&) { return 2; });
  other.on<Ask>([&](const Ask&) {
    gate.wait();
    return 3;
  });
  const auto event = make_event(Ask{});
  other.emit(event);
  REQUIRE(gate.wait_for_arrivals(1));
  racing.emit(event);
  CHECK(racing.wait_until_idle());
  CHECK(event.event_status() == EventStatus::started);
  CHECK(outcomes(event) == Texts{"started", "completed", "EventHandlerCancelledError"});
  gate.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"completed", "completed", "EventHandlerCancelledError"});
}

TEST_CASE("the event completes after the winner though the losers go on", "[T-FST-4]") {
  Gate losers;
  std::atomic<int> left{0};
  std::optional<Event<Ask>> event;
  {
    EventBus bus("FstPrompt", {.event_handler_concurrency = parallel_handlers, .event_handler_completion = first});
    const OpenAtEnd open(losers);
    const auto loser = [&](const Ask&) {
      losers.wait();
      return ++left;
    };
    bus.on<Ask>(loser);
    bus.on<Ask>([&](const Ask&) {
      losers.wait_for_arrivals(2);
      return 10;
    });
    bus.on<Ask>(loser);
    const Stopwatch watch;
    event = bus.emit(Ask{});
    event->wait();
    CHECK(watch.seconds() < promptly);
    CHECK(left == 0);
    CHECK(outcomes(*event) == Texts{"EventHandlerAbortedError", "completed", "EventHandlerAbortedError"});
    losers.open();
    CHECK(eventually([&] { return left == 2; }));
  }
  CHECK(outcomes(*event) == Texts{"EventHandlerAbortedError", "completed", "EventHandlerAbortedError"});
  CHECK_FALSE(event->event_results()[0].result_as<int>().has_value());
  CHECK_FALSE(event->event_results()[2].result_as<int>().has_value());
}

TEST_CASE("without a winner all handlers run and nothing is cancelled", "[T-FST-5]") {
  const auto mode = GENERATE(EventHandlerConcurrency::serial, EventHandlerConcurrency::parallel);
  EventBus bus("FstNoWinner_" + std::to_string(static_cast<int>(mode)),
               {.event_handler_concurrency = mode, .event_handler_completion = first});
  bus.on<Ask>([](const Ask&) {});
  bus.on<Ask>([](const Ask&) { throw Error("none"); });
  bus.on<Ask>([](const Event<Ask>& event) { return event.emit(Part{}); });
  const auto event = bus.emit(Ask{}).wait();
  CHECK(outcomes(event) == Texts{"completed", "Error", "completed"});
  CHECK(event.event_status() == EventStatus::completed);
  CHECK_FALSE(event.event_result<int>({.raise_if_any = false}).has_value());
}

TEST_CASE("the accessor throws the loser's error unless told not to", "[T-FST-6]") {
  EventBus bus("FstAccessor", {.event_handler_completion = first});
  bus.on<Ask>([](const Ask&) { return 1; });
  bus.on<Ask>([](const Ask&) { return 2; });
  const auto event = bus.emit(Ask{}).now();
  const auto error = thrown_by([&] { event.event_result<int>(); });
  CHECK(error_name(error) == "EventHandlerCancelledError");
  CHECK_THAT(error_message(error), test::contains("first result resolved"));
  CHECK(error == event.event_results()[1].error());
  CHECK(event.event_result<int>({.raise_if_any = false}) == 1);
}

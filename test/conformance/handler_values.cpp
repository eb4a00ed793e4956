// What the result becomes from what a handler returns.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <abxbus/json.hpp>

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
struct Part {
  int n = 0;
};
struct Sum {
  using event_result_type = double;
  int n = 0;
};
using Texts = std::vector<std::string>;

struct Order {
  std::string item;
  int count = 0;
  friend bool operator==(const Order&, const Order&) = default;
};

EventResult only(const BaseEvent& event) {
  return event.event_results()[0];
}

}  // namespace

TEST_CASE("nothing, nullopt, nullptr and monostate are no value", "[T-HND-8]") {
  EventBus bus("HndNothing");
  bus.on<Job>([](const Job&) {});
  bus.on<Job>([](const Job&) -> std::optional<int> { return std::nullopt; });
  bus.on<Job>([](const Job&) { return nullptr; });
  bus.on<Job>([](const Job&) { return std::monostate(); });
  bus.on<Job>([](const Job&) { return std::nullopt; });
  bus.on<Job>([](Event<Job>) -> task<> { co_return; });
  bus.on<Job>([](Event<Job>) -> task<std::optional<std::string>> { co_return std::nullopt; });
  const auto event = bus.emit(Job{}).now();
  CHECK(outcomes(event) == Texts(7, "completed"));
  for (const auto& result : event.event_results()) {
    CHECK_FALSE(result.result_as<int>().has_value());
    CHECK_FALSE(result.error());
    CHECK_FALSE(result.event_value().has_value());
  }
  CHECK(event.event_results_list<int>().empty());
}

TEST_CASE("false, zero, empty texts and empty containers are values", "[T-HND-8]") {
  EventBus bus("HndFalsy");
  bus.on<Job>([](const Job&) { return false; });
  bus.on<Job>([](const Job&) { return 0; });
  bus.on<Job>([](const Job&) { return 0.0; });
  bus.on<Job>([](const Job&) { return ""; });
  bus.on<Job>([](const Job&) { return std::vector<int>(); });
  bus.on<Job>([](const Job&) { return std::map<std::string, int>(); });
  bus.on<Job>([](const Job&) -> std::optional<int> { return 0; });
  const auto event = bus.emit(Job{}).now();
  CHECK(outcomes(event) == Texts(7, "completed"));
  const auto results = event.event_results();
  CHECK(results[0].result_as<bool>() == false);
  CHECK(results[1].result_as<int>() == 0);
  CHECK(results[2].result_as<double>() == 0.0);
  CHECK(results[3].result_as<std::string>() == "");
  CHECK(results[4].result_as<std::vector<int>>() == std::vector<int>());
  CHECK((results[5].result_as<std::map<std::string, int>>() == std::map<std::string, int>()));
  CHECK(results[6].result_as<int>() == 0);
  int usable = 0;
  event.event_results_list({.include = [&](const std::optional<json::value>&, const EventResult& result) {
    if (result.usable()) ++usable;
    return false;
  }});
  CHECK(usable == 7);
}

TEST_CASE("sync and coroutine handlers give the same results", "[T-CNV-8]") {
  Gate gate;
  EventBus bus("HndTwins");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) -> std::string {
    if (job.n == 1) throw Error("same");
    if (job.n == 2) gate.wait();
    return "value";
  });
  bus.on<Job>([&](Event<Job> event) -> task<std::string> {
    if (event->n == 1) throw Error("same");
    if (event->n == 2) gate.wait();
    co_return "value";
  });
  const auto value = bus.emit(Job{0}).wait();
  const auto error = bus.emit(Job{1}).wait();
  const auto late = bus.emit(Job{2}, {.event_handler_timeout = 30ms}).wait();
  const auto cut =
      bus.emit(Job{2}, {.event_timeout = 30ms, .event_handler_concurrency = EventHandlerConcurrency::serial}).wait();
  for (const auto& result : value.event_results()) CHECK(result.result_as<std::string>() == "value");
  CHECK(outcomes(error) == Texts{"Error", "Error"});
  CHECK(outcomes(late) == Texts{"EventHandlerTimeoutError", "EventHandlerTimeoutError"});
  CHECK(outcomes(cut) == Texts{"EventHandlerAbortedError", "EventHandlerCancelledError"});
  CHECK(late.event_results()[1].error_message() ==
        run_text(bus, late, late.event_results()[1]) + " timed out after 0.03s");
}

TEST_CASE("a returned event is kept as an event, not awaited and no value", "[T-HND-9]") {
  Gate gate;
  EventBus bus("HndEventResult", {.event_concurrency = EventConcurrency::parallel}), target("HndEventTarget");
  const OpenAtEnd open(gate);
  bus.on<Part>([&](const Part&) { gate.wait(); });
  target.on<Sum>([](const Sum&) { return 1.0; });
  bus.on<Job>([](const Event<Job>& event) { return event.emit(Part{4}); }, {.handler_name = "child"});
  bus.on<Job>([](const Event<Job>& event) -> task<BaseEvent> { co_return event.emit(Part{5}); },
              {.handler_name = "coroutine"});
  const auto event = bus.emit(Job{}).wait();  // completes while the returned events are still open
  CHECK(outcomes(event) == Texts{"completed", "completed"});
  REQUIRE(only(event).event_value().has_value());
  CHECK(*only(event).event_value() == event.event_children()[0]);
  CHECK(only(event).event_value()->as<Part>()->operator->()->n == 4);
  CHECK_FALSE(only(event).result_as<int>().has_value());
  CHECK_FALSE(event.event_result<int>().has_value());
  CHECK(event.event_results_list<int>().empty());

  // A forwarder returns an event too; the declared result type does not apply to it.
  bus.on("Sum", target.forwarder());
  bus.on<Sum>([](const Sum&) { return 2.5; });
  const auto sum = bus.emit(Sum{}).wait();
  CHECK(outcomes(sum)[0] == "completed");
  REQUIRE(only(sum).event_value().has_value());
  CHECK(*only(sum).event_value() == sum);
  gate.open();
}

TEST_CASE("a settled result is never run again", "[T-HND-11]") {
  Gate gate;
  std::atomic<int> runs{0}, cancelled_runs{0};
  EventBus bus("HndOnce");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    ++runs;
    if (job.n == 2) gate.wait();
    return runs.load();
  });
  bus.on<Job>([&](const Job& job) {
    if (job.n == 2) ++cancelled_runs;
  });
  const auto event = bus.emit(Job{1}).wait();
  const auto completed_at = only(event).completed_at();
  {
    const std::jthread a([&] { event.now(), event.event_result<int>(); });
    const std::jthread b([&] { event.now({.first_result = true}), event.event_results_list<int>(); });
    event.now();
  }
  CHECK(runs == 1);
  CHECK(only(event).result_as<int>() == 1);
  CHECK(only(event).completed_at() == completed_at);

  const auto cut = bus.emit(Job{2}, {.event_timeout = 30ms}).wait();
  cut.now();
  thrown_by([&] { cut.event_results_list<int>(); });
  gate.open();
  bus.wait_until_idle();
  CHECK(outcomes(cut) == Texts{"EventHandlerAbortedError", "EventHandlerCancelledError"});
  CHECK(runs == 2);
  CHECK(cancelled_runs == 0);
}

TEST_CASE("results are pending from the start and start one by one", "[T-HND-12]") {
  Gate first, second;
  EventBus bus("HndStates");
  const OpenAtEnd open(first, second);
  bus.on<Job>([&](const Job&) { first.wait(); });
  bus.on<Job>([&](const Job&) {
    second.wait();
    throw Error("last");
  });
  bus.on("*", [](BaseEvent) {});
  const auto event = bus.emit(Job{});
  REQUIRE(first.wait_for_arrivals(1));
  CHECK(outcomes(event) == Texts{"started", "pending", "pending"});
  first.open();
  REQUIRE(second.wait_for_arrivals(1));
  CHECK(outcomes(event) == Texts{"completed", "started", "pending"});
  second.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"completed", "Error", "completed"});
}

TEST_CASE("a result tells all about its handler and run", "[T-HND-13]") {
  EventBus bus("HndFields");
  const auto registered = Timestamp::parse("2024-05-06T07:08:09.000000000Z");
  const auto before = Timestamp::now();
  bus.on<Part>([](const Part&) {});
  const auto entry = bus.on<Job>(
      [](const Event<Job>& event) {
        event.emit(Part{1});
        event.emit(Part{2});
        return 9;
      },
      {.handler_name = "keeper",
       .handler_file_path = "~/src/keeper.cpp:12",
       .handler_registered_at = registered,
       .handler_timeout = 8s,
       .handler_slow_timeout = 7s});
  const auto event = bus.emit(Job{}).wait();
  const auto result = only(event);
  CHECK(result.id().str().size() == 36);
  CHECK(result.id().str()[14] == '7');
  CHECK(result.id() == only(event).id());
  CHECK(result.status() == EventResultStatus::completed);
  CHECK(result.event_id() == event.event_id());
  CHECK(result.handler_id() == entry.id());
  CHECK(result.handler_name() == "keeper");
  CHECK(result.handler_file_path() == "~/src/keeper.cpp:12");
  CHECK(number(result.handler_timeout()) == 8.0);
  CHECK(number(result.handler_slow_timeout()) == 7.0);
  CHECK(result.handler_registered_at() == registered);
  CHECK(result.handler_event_pattern() == "Job");
  CHECK(result.eventbus_id() == bus.id());
  CHECK(result.eventbus_name() == "HndFields");
  REQUIRE(result.started_at().has_value());
  REQUIRE(result.completed_at().has_value());
  CHECK(before <= *result.started_at());
  CHECK(*result.started_at() <= *result.completed_at());
  CHECK(result.result_as<int>() == 9);
  CHECK_FALSE(result.error());
  CHECK(result.error_type() == "");
  REQUIRE(result.event_children().size() == 2);
  CHECK(result.event_children()[0].as<Part>()->operator*().n == 1);
  CHECK(result.event_children()[1].as<Part>()->operator*().n == 2);
}

TEST_CASE("without a declared result type a value is stored untouched", "[T-HND-20]") {
  EventBus bus("HndUntouched");
  bus.on<Job>([](const Job&) { return Order{"tea", 3}; });
  bus.on<Job>([](const Job&) { return std::vector<std::string>{"a", "b"}; });
  bus.on<Job>([](const Job&) { return 12; });
  bus.on("Job", [](const BaseEvent&) { return std::string("12"); });
  const auto results = bus.emit(Job{}).now().event_results();
  CHECK((results[0].result_as<Order>() == Order{"tea", 3}));
  CHECK(results[1].result_as<std::vector<std::string>>() == Texts{"a", "b"});
  CHECK(results[2].result_as<int>() == 12);
  CHECK(results[3].result_as<std::string>() == "12");
}

TEST_CASE("a typed registration accepts what converts to the declared result type", "[T-HND-23]") {
  EventBus bus("HndConverts");
  bus.on<Sum>([](const Sum& sum) { return sum.n; });
  bus.on<Sum>([](const Sum&) { return 0.5f; });
  bus.on<Sum>([](const Sum&) -> std::optional<int> { return 4; });
  bus.on<Sum>([](const Sum&) -> std::optional<double> { return std::nullopt; });
  bus.on<Sum>([](const Sum&) {});
  bus.on<Sum>([](const Event<Sum>& event) { return event.emit(Part{}); });
  bus.on<Sum>([](Event<Sum>) -> task<int> { co_return 6; });
  const auto event = bus.emit(Sum{3}).now();
  CHECK(outcomes(event) == Texts(7, "completed"));
  CHECK(event.event_result() == 3.0);
  CHECK(event.event_results_list() == std::vector<std::optional<double>>{3.0, 0.5, 4.0, 6.0});
}

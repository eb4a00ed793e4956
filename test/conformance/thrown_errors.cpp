// What a handler throws, or returns as an error, and where it surfaces.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
struct Part {
  static constexpr auto event_concurrency = EventConcurrency::parallel;
};
using Texts = std::vector<std::string>;

struct OutOfStock : std::runtime_error {
  OutOfStock() : std::runtime_error("none left"), left(3) {}
  int left;
};
struct NoException {
  int n = 5;
};

}  // namespace

TEST_CASE("a thrown error becomes the result, and everything else goes on", "[T-HND-1]") {
  const auto mode = GENERATE(EventHandlerConcurrency::serial, EventHandlerConcurrency::parallel);
  EventBus bus("HndThrow_" + std::to_string(static_cast<int>(mode)), {.event_handler_concurrency = mode});
  bus.on<Job>([](const Job&) -> int { throw OutOfStock(); });
  bus.on<Job>([](const Job& job) { return job.n; });
  const auto event = bus.emit(Job{1});
  const auto later = bus.emit(Job{2});
  event.wait();
  later.wait();
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(outcomes(event) == Texts{"OutOfStock", "completed"});
  const auto failed = event.event_results()[0];
  CHECK(failed.status() == EventResultStatus::error);
  const auto error = failed.error();
  const auto* stock = error_as<OutOfStock>(error);
  REQUIRE(stock != nullptr);
  CHECK(stock->left == 3);
  CHECK(failed.error_message() == "none left");
  CHECK_FALSE(failed.result_as<int>().has_value());
  CHECK(failed.started_at().has_value());
  CHECK(failed.completed_at().has_value());
  CHECK(event.event_results()[1].result_as<int>() == 1);
  CHECK(outcomes(later) == Texts{"OutOfStock", "completed"});
}

TEST_CASE("an error on one bus does not disturb the results of another", "[T-HND-1]") {
  Gate gate;
  EventBus fine("HndFine"), failing("HndFailing");
  const OpenAtEnd open(gate);
  fine.on<Job>([&](const Job&) { return gate.wait(); });
  failing.on<Job>([](const Job&) { throw OutOfStock(); });
  const auto event = fine.emit(Job{});
  REQUIRE(gate.wait_for_arrivals(1));
  failing.emit(event);
  CHECK(failing.wait_until_idle());
  CHECK(outcomes(event) == Texts{"started", "OutOfStock"});
  gate.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"completed", "OutOfStock"});
}

TEST_CASE("waiting never throws a handler's error, accessors do", "[T-HND-2]") {
  EventBus bus("HndWhere");
  bus.on<Job>([](const Job&) { throw OutOfStock(); });
  const auto event = bus.emit(Job{});
  CHECK(event.now() == event);
  CHECK(event.wait() == event);
  CHECK(event.now_async().get() == event);
  CHECK(event.wait_async().get() == event);
  CHECK(event.now({.first_result = true}) == event);
  CHECK_THROWS_AS(event.event_result<int>(), OutOfStock);
  CHECK_THROWS_AS(event.event_results_list<int>(), OutOfStock);
  CHECK_THROWS_AS(event.event_results()[0].get<int>(), OutOfStock);
  REQUIRE(event.event_errors().size() == 1);
  CHECK(error_name(event.event_errors()[0]) == "OutOfStock");
}

TEST_CASE("a handler's error is logged once, at level error", "[T-HND-3]") {
  const auto noted = std::make_shared<Recorder>();
  EventBus bus("HndLogged");
  bus.on<Job>([](const Job&) { throw OutOfStock(); }, {.handler_name = "reserve"});
  set_log_sink([noted](LogLevel level, std::string_view text) {
    noted->add((level == LogLevel::error ? "error: " : "other: ") + std::string(text));
  });
  const auto event = bus.emit(Job{}).wait();
  thrown_by([&] { event.event_result<int>(); });
  bus.wait_until_idle();
  set_log_sink({});
  CHECK(noted->notes() ==
        Texts{"error: Error in event handler reserve(" + event_label(event) + ") -> OutOfStock(none left)"});
}

TEST_CASE("a coroutine's exception after suspension is the result", "[T-HND-4][T-CNV-8]") {
  EventBus bus("HndCoroutine");
  bus.on<Part>([](const Part&) {});
  bus.on<Job>([](Event<Job> event) -> task<int> {
    const auto part = event.emit(Part{});
    co_await part.wait_async();
    throw OutOfStock();
  });
  bus.on<Job>([](Event<Job> event) -> task<> {
    const auto part = event.emit(Part{});
    co_await part.wait_async();
    throw NoException();
  });
  bus.on<Job>([](const Job&) { return 1; });
  const auto event = bus.emit(Job{}).wait();
  REQUIRE(outcomes(event) == Texts{"OutOfStock", "Exception", "completed"});
  const auto standard = event.event_results()[0].error(), other = event.event_results()[1].error();
  CHECK(error_as<OutOfStock>(standard)->left == 3);
  CHECK(error_as<NoException>(other)->n == 5);
}

TEST_CASE("nothing that is thrown escapes to a worker", "[T-HND-4]") {
  EventBus bus("HndNonStandard");
  bus.on<Job>([](const Job&) { throw 42; });
  bus.on<Job>([](const Job&) { throw std::string("a text"); });
  bus.on<Job>([](const Job&) { throw "characters"; });
  bus.on<Job>([](const Job&) { throw NoException(); });
  bus.on<Job>([](const Job&) { return 1; });
  const auto event = bus.emit(Job{}).wait();
  CHECK(outcomes(event) == Texts{"Exception", "Exception", "Exception", "Exception", "completed"});
  const auto results = event.event_results();
  CHECK(results[0].error_message() == "unknown exception");
  CHECK(results[1].error_message() == "a text");
  CHECK(results[2].error_message() == "characters");
  CHECK(results[3].error_message() == "unknown exception");
  CHECK_THROWS_AS(results[0].get<int>(), int);
  CHECK(outcomes(bus.emit(Job{}).wait()).size() == 5);
}

TEST_CASE("a returned exception counts like a thrown one", "[T-HND-5]") {
  const CapturedLog log;
  EventBus bus("HndReturned");
  bus.on<Job>([](const Job&) { return std::make_exception_ptr(OutOfStock()); }, {.handler_name = "returns"});
  bus.on<Job>([](const Job&) { return std::exception_ptr(); }, {.handler_name = "null"});
  bus.on<Job>([](Event<Job>) -> task<std::exception_ptr> { co_return std::make_exception_ptr(OutOfStock()); },
              {.handler_name = "coroutine"});
  const auto event = bus.emit(Job{}).wait();
  REQUIRE(outcomes(event) == Texts{"OutOfStock", "completed", "OutOfStock"});
  CHECK_FALSE(result_of(event, "null").result_as<int>().has_value());
  CHECK_FALSE(result_of(event, "null").error());
  const auto returned = result_of(event, "returns").error();
  CHECK(error_as<OutOfStock>(returned)->left == 3);
  CHECK(log.count("Error in event handler returns(") == 1);
  CHECK(log.count("Error in event handler coroutine(") == 1);
  // One warning beside the error line of each.
  CHECK(log.lines().size() == 4);
}

TEST_CASE("a TimeoutError that escapes becomes the handler's timeout, text unchanged", "[T-HND-6]") {
  Gate gate;
  EventBus bus("HndEscaped");
  const OpenAtEnd open(gate);
  bus.on<Part>([&](const Part&) { gate.wait(); });
  bus.on<Job>(
      [&](const Event<Job>& event) {
        if (event->n == 1) bus.emit(Part{}).wait({.timeout = 20ms});
        if (event->n == 2) throw TimeoutError("");
        if (event->n == 3) throw EventHandlerTimeoutError("already one");
      },
      {.handler_name = "waits"});
  const auto event = bus.emit(Job{1}).wait();
  const auto error = event.event_results()[0].error();
  REQUIRE(outcomes(event) == Texts{"EventHandlerTimeoutError"});
  CHECK(error_message(error) == "Timed out waiting for Part completion after 0.02s");
  const auto* converted = error_as<EventHandlerTimeoutError>(error);
  REQUIRE(converted != nullptr);
  CHECK(number(converted->timeout_seconds()) == 0.02);
  CHECK(error_type_name(converted->cause()) == "TimeoutError");
  CHECK(error_message(converted->cause()) == error_message(error));
  CHECK(converted->event_id() == event.event_id());
  CHECK(converted->handler_name() == "waits");

  const auto empty = bus.emit(Job{2}).wait();
  CHECK(outcomes(empty) == Texts{"EventHandlerTimeoutError"});
  CHECK(empty.event_results()[0].error_message() == run_text(bus, empty, empty.event_results()[0]) + " timed out");
  const auto kept = bus.emit(Job{3}).wait();
  CHECK(outcomes(kept) == Texts{"EventHandlerTimeoutError"});
  CHECK(kept.event_results()[0].error_message() == "already one");
}

TEST_CASE("an escaped wait limit leaves the awaited child alone", "[T-HND-7]") {
  Gate gate;
  EventBus bus("HndChildKept");
  const OpenAtEnd open(gate);
  bus.on<Part>([&](const Part&) { return gate.wait(); });
  bus.on<Job>([](const Event<Job>& event) { event.emit(Part{}).now({.timeout = 20ms}); });
  const auto event = bus.emit(Job{});
  REQUIRE(eventually([&] { return outcomes(event) == Texts{"EventHandlerTimeoutError"}; }));
  const auto children = event.event_children();
  REQUIRE(children.size() == 1);
  CHECK(children[0].event_blocks_parent_completion());
  std::this_thread::sleep_for(30ms);
  CHECK(event.event_status() == EventStatus::started);
  CHECK(eventually([&] { return outcomes(children[0]) == Texts{"started"}; }));
  gate.open();
  event.wait();
  CHECK(outcomes(children[0]) == Texts{"completed"});
  CHECK(children[0].event_completed_at()->time() <= event.event_completed_at()->time());
}

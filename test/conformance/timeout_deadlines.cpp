// Which deadline ends a handler, what happens to the others, and the clocks behind it.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
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

constexpr auto parallel_handlers = EventHandlerConcurrency::parallel;

}  // namespace

TEST_CASE("the effective timeout is a number; two absolute deadlines are what is enforced", "[T-TMO-14]") {
  Gate gate;
  EventBus bus("TmoStatic", {.event_timeout = 0.25s});
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) { std::this_thread::sleep_for(120ms); }, {.handler_name = "first"});
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "second", .handler_timeout = 0.2s});
  const auto event = bus.emit(Job{}).wait();
  // 0.2 s of its own, but the event's deadline came after about 0.13 s of them.
  CHECK(outcomes(event) == Texts{"completed", "EventHandlerAbortedError"});
  CHECK(number(result_of(event, "second").timeout()) == 0.2);
}

TEST_CASE("the event's clock starts with the run, not while the event waits for its turn", "[T-TMO-20]") {
  Gate gate;
  EventBus bus("TmoQueued");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) gate.wait();
    return job.n;
  });
  bus.emit(Job{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Job{2}, {.event_timeout = 0.2s});
  std::this_thread::sleep_for(300ms);
  gate.open();
  queued.wait();
  CHECK(outcomes(queued) == Texts{"completed"});
}

TEST_CASE("the event's clock runs from the start of its first handler to the deadline", "[T-TMO-20][T-TMO-31]") {
  Gate gate;
  EventBus bus("TmoClock", {.event_timeout = 50ms});
  const OpenAtEnd open(gate);
  const Stopwatch watch;
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto event = bus.emit(Job{}).wait();
  const double done = watch.seconds();
  CHECK(done >= 0.05 - clock_slack);
  CHECK(done < promptly);
  const Seconds recorded = event.event_results()[0].completed_at()->time() - event.event_started_at()->time();
  CHECK(recorded.count() >= 0.05 - clock_slack);
  CHECK(recorded.count() < promptly);
}

TEST_CASE("the event's clock stops when its last handler is settled, though a blocking child is open", "[T-TMO-20]") {
  Gate gate;
  EventBus bus("TmoChildOpen");
  const OpenAtEnd open(gate);
  bus.on<Part>([&](const Part&) { return gate.wait(); });
  bus.on<Job>([](const Event<Job>& event) {
    const auto child = event.emit(Part{}, {.event_timeout = 0s});
    try {
      child.now({.timeout = 5ms});
    } catch (const TimeoutError&) {
      return 1;
    }
    return 2;
  });
  const auto parent = bus.emit(Job{}, {.event_timeout = 0.25s});
  REQUIRE(gate.wait_for_arrivals(1));
  std::this_thread::sleep_for(400ms);
  CHECK(parent.event_status() == EventStatus::started);
  CHECK(outcomes(parent) == Texts{"completed"});
  gate.open();
  parent.wait();
  REQUIRE(parent.event_children().size() == 1);
  CHECK(outcomes(parent) == Texts{"completed"});
  CHECK(outcomes(parent.event_children()[0]) == Texts{"completed"});
}

TEST_CASE("a handler's clock starts when its serial turn comes", "[T-TMO-21]") {
  EventBus bus("TmoTurn", {.event_timeout = 0s});
  bus.on<Job>([](const Job&) { std::this_thread::sleep_for(300ms); }, {.handler_name = "slow", .handler_timeout = 0s});
  bus.on<Job>([](const Job&) { return 7; }, {.handler_name = "after"});
  const auto event = bus.emit(Job{}, {.event_handler_timeout = 0.2s}).wait();
  CHECK(outcomes(event) == Texts{"completed", "completed"});
  CHECK(number(result_of(event, "after").timeout()) == 0.2);
}

TEST_CASE("the earlier deadline names the error, a tie goes to the event", "[T-TMO-22]") {
  Gate gate;
  EventBus bus("TmoTie");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto ended_by = [&](const EventOptions& options) { return outcomes(bus.emit(Job{}, options).wait()); };
  CHECK(ended_by({.event_timeout = 2s, .event_handler_timeout = 30ms}) == Texts{"EventHandlerTimeoutError"});
  CHECK(ended_by({.event_timeout = 30ms, .event_handler_timeout = 2s}) == Texts{"EventHandlerAbortedError"});
  CHECK(ended_by({.event_timeout = 40ms, .event_handler_timeout = 40ms}) == Texts{"EventHandlerAbortedError"});
  CHECK(ended_by({.event_timeout = 30ms}) == Texts{"EventHandlerAbortedError"});
  CHECK(ended_by({.event_timeout = 0s, .event_handler_timeout = 30ms}) == Texts{"EventHandlerTimeoutError"});
}

TEST_CASE("a handler's deadline ends that handler only", "[T-TMO-23]") {
  Gate gate;
  EventBus bus("TmoHandlerOnly");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "slow", .handler_timeout = 10ms});
  bus.on<Job>([](const Job&) { return "fast"; }, {.handler_name = "fast"});
  const auto event = bus.emit(Job{}, {.event_timeout = 0s}).wait();
  CHECK(outcomes(event) == Texts{"EventHandlerTimeoutError", "completed"});
  CHECK(result_of(event, "fast").result_as<std::string>() == "fast");
  const auto slow = result_of(event, "slow");
  CHECK(slow.error_message() == run_text(bus, event, slow) + " timed out after 0.01s");
  CHECK_THAT(slow.error_message(), test::contains("slow() @ "));
  CHECK(slow.completed_at()->time() - slow.started_at()->time() >= 8ms);
  CHECK(event.event_status() == EventStatus::completed);
}

TEST_CASE("a handler's deadline leaves parallel handlers alone", "[T-TMO-23]") {
  Gate gate, other;
  EventBus bus("TmoHandlerParallel", {.event_handler_concurrency = parallel_handlers, .event_timeout = 0s});
  const OpenAtEnd open(gate, other);
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "", .handler_timeout = 20ms});
  bus.on<Job>([&](const Job&) { return other.wait(); });
  const auto event = bus.emit(Job{});
  REQUIRE(eventually([&] { return outcomes(event) == Texts{"EventHandlerTimeoutError", "started"}; }));
  CHECK(event.event_status() == EventStatus::started);
  const auto first = event.event_results()[0];
  CHECK(first.error_message() == run_text(bus, event, first) + " timed out after 0.02s");
  CHECK_THAT(first.error_message(), test::contains("function#" + last4(first.handler_id()) + "()"));
  other.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"EventHandlerTimeoutError", "completed"});
}

TEST_CASE("the event's deadline settles everything open in one step and nothing that is settled", "[T-TMO-24]") {
  Gate gate;
  std::atomic<int> never{0};
  EventBus bus("TmoEventDeadline");
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) { return 1; });
  bus.on<Job>([](const Job&) -> int { throw Error("of its own"); });
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_timeout = 20ms});
  bus.on<Job>([&](const Job&) { gate.wait(); });
  bus.on<Job>([&](const Job&) { ++never; });
  bus.on("*", [&](BaseEvent) { ++never; });
  const auto event = bus.emit(Job{}, {.event_timeout = 0.3s}).wait();
  CHECK(outcomes(event) == Texts{"completed", "Error", "EventHandlerTimeoutError", "EventHandlerAbortedError",
                                 "EventHandlerCancelledError", "EventHandlerCancelledError"});
  const auto results = event.event_results();
  CHECK(results[0].result_as<int>() == 1);
  CHECK(results[1].error_message() == "of its own");
  CHECK(results[3].error_message() == "Aborted running handler due to event timeout");
  CHECK(results[4].error_message() == "Cancelled pending handler due to event timeout");
  CHECK(results[5].error_message() == "Cancelled pending handler due to event timeout");
  CHECK(event.event_status() == EventStatus::completed);
  gate.open();
  bus.wait_until_idle();
  CHECK(never == 0);
}

TEST_CASE("serial hard cap: completed, aborted, cancelled", "[T-TMO-25]") {
  Gate gate;
  std::atomic<int> third{0};
  EventBus bus("TmoSerialCap");
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) { std::this_thread::sleep_for(30ms); });
  bus.on<Job>([&](const Job&) { gate.wait(); });
  bus.on<Job>([&](const Job&) { ++third; });
  const Stopwatch watch;
  const auto event = bus.emit(Job{}, {.event_timeout = 0.25s}).wait();
  CHECK(watch.seconds() >= 0.25 - clock_slack);
  CHECK(outcomes(event) == Texts{"completed", "EventHandlerAbortedError", "EventHandlerCancelledError"});
  CHECK(third == 0);
}

TEST_CASE("parallel hard cap: all running handlers are aborted", "[T-TMO-26]") {
  Gate gate;
  EventBus bus("TmoParallelCap", {.event_handler_concurrency = parallel_handlers, .event_timeout = 0.25s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto event = bus.emit(Job{}).wait();
  CHECK(outcomes(event) == Texts{"EventHandlerAbortedError", "EventHandlerAbortedError"});
}

TEST_CASE("a limit of the handler's own and the hard cap keep their own classes", "[T-TMO-27]") {
  Gate gate;
  EventBus bus("TmoMixedCap", {.event_handler_concurrency = parallel_handlers, .event_timeout = 0.25s});
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) {
    std::this_thread::sleep_for(10ms);
    throw TimeoutError("Timed out after 0.01s (attempt 1)", 10ms);
  });
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto event = bus.emit(Job{}).wait();
  CHECK(outcomes(event) == Texts{"EventHandlerTimeoutError", "EventHandlerAbortedError"});
  CHECK(event.event_results()[0].error_message() == "Timed out after 0.01s (attempt 1)");
}

TEST_CASE("an event without handlers has no timeout and completes at once", "[T-TMO-28]") {
  EventBus bus("TmoNoHandlers", {.event_timeout = 1us});
  const auto event = bus.emit(Job{}).wait({.timeout = patience});
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_completed_at().has_value());
  CHECK(event.event_results().empty());
  CHECK(event.event_errors().empty());
}

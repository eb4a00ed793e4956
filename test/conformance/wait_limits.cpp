// Limits of the caller's own wait: now, wait, wait_until_idle, EventResult::wait and get.

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
struct Step {
  static constexpr auto event_concurrency = EventConcurrency::parallel;
  int n = 0;
};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("now and wait with a limit limit only the caller", "[T-TMO-35]") {
  Gate gate;
  std::atomic<int> runs{0};
  std::atomic<bool> stopped{false};
  EventBus bus("WaitLimit");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&, std::stop_token token) {
    ++runs;
    gate.wait();
    stopped = token.stop_requested();
    return 5;
  });
  const auto event = bus.emit(Job{});
  const Stopwatch watch;
  const auto from_now = thrown_by([&] { event.now({.timeout = 20ms}); });
  CHECK(watch.seconds() >= 0.02 - clock_slack);
  const auto* limit = error_as<TimeoutError>(from_now);
  REQUIRE(limit != nullptr);
  CHECK(error_type_name(from_now) == "TimeoutError");
  CHECK(std::string(limit->what()) == "Timed out waiting for Job completion after 0.02s");
  CHECK(number(limit->timeout_seconds()) == 0.02);

  CHECK(error_message(thrown_by([&] { event.wait({.timeout = 0.03s}); })) ==
        "Timed out waiting for Job completion after 0.03s");
  CHECK(error_message(thrown_by([&] { event.now({.timeout = 0.02s, .first_result = true}); })) ==
        "Timed out waiting for Job result after 0.02s");
  CHECK(error_message(thrown_by([&] { event.wait({.timeout = 0.02s, .first_result = true}); })) ==
        "Timed out waiting for Job result after 0.02s");

  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(outcomes(event) == Texts{"started"});
  gate.open();
  event.now();
  event.wait();
  CHECK(runs == 1);
  CHECK_FALSE(stopped);
  CHECK(event.event_results()[0].result_as<int>() == 5);
}

TEST_CASE("a limit of unset or zero is none, a negative one is refused first", "[T-TMO-35]") {
  Gate gate;
  EventBus bus("WaitZero");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { return gate.wait(); });
  const auto event = bus.emit(Job{});
  Recorder returned;
  {
    const std::jthread a([&] { event.wait({.timeout = 0s}), returned.add("wait 0"); });
    const std::jthread b([&] { event.now({.timeout = 0s}), returned.add("now 0"); });
    const std::jthread c([&] { event.wait(), returned.add("wait"); });
    std::this_thread::sleep_for(50ms);
    CHECK(returned.size() == 0);
    gate.open();
  }
  CHECK(returned.size() == 3);

  const auto refused = [](const std::exception_ptr& error) {
    return error_type_name(error) + ": " + error_message(error);
  };
  CHECK(refused(thrown_by([&] { event.now({.timeout = -1s}); })) == "ValidationError: timeout must be >= 0 or null");
  CHECK(refused(thrown_by([&] { event.wait({.timeout = -1ms}); })) == "ValidationError: timeout must be >= 0 or null");
  // Before anything else: also before the check that the event has a bus.
  CHECK(refused(thrown_by([] { make_event(Job{}).now({.timeout = -1s}); })) ==
        "ValidationError: timeout must be >= 0 or null");
}

TEST_CASE("waiting for a completed event returns at once", "[T-TMO-35]") {
  EventBus bus("WaitCompleted");
  std::atomic<int> runs{0};
  bus.on<Job>([&](const Job&) { ++runs; });
  const auto event = bus.emit(Job{}).now();
  CHECK(event.now({.timeout = 1ns}) == event);
  CHECK(event.wait({.timeout = 1ns}) == event);
  CHECK(event.wait({.timeout = 1ns, .first_result = true}) == event);
  CHECK(runs == 1);
}

TEST_CASE("wait_until_idle gives up at its limit with false and one warning", "[T-TMO-36]") {
  Gate gate;
  EventBus bus("IdleLimit");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { return gate.wait(); });
  const auto event = bus.emit(Job{});
  REQUIRE(gate.wait_for_arrivals(1));
  {
    const CapturedLog log;
    const Stopwatch watch;
    CHECK_FALSE(bus.wait_until_idle(50ms));
    CHECK(watch.seconds() >= 0.05 - clock_slack);
    CHECK(log.lines().size() == 1);
  }
  CHECK(outcomes(event) == Texts{"started"});
  Recorder returned;
  {
    const std::jthread a([&] { returned.add(bus.wait_until_idle() ? "idle" : "busy"); });
    const std::jthread b([&] { returned.add(bus.wait_until_idle(0s) ? "idle" : "busy"); });
    const std::jthread c([&] { returned.add(bus.wait_until_idle(-1s) ? "idle" : "busy"); });
    std::this_thread::sleep_for(50ms);
    CHECK(returned.size() == 0);
    gate.open();
  }
  CHECK(returned.notes() == Texts{"idle", "idle", "idle"});
  CHECK(outcomes(event) == Texts{"completed"});
}

TEST_CASE("EventResult::wait and get wait until the run is settled", "[T-HND-14]") {
  Gate gate;
  EventBus bus("ResultWait", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { return gate.wait() ? 3 : 0; }, {.handler_name = "value"});
  bus.on<Job>([](const Job&) { throw Error("broken"); }, {.handler_name = "broken"});
  bus.on<Job>([](const Job&) {}, {.handler_name = "nothing"});
  const auto event = bus.emit(Job{});
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(eventually([&] { return event.event_results().size() == 3; }));

  const auto value = result_of(event, "value");
  const std::string expired =
      "Event handler " + bus.label() + ".value(#" + last4(event.event_id().str()) + ") timed out after 0.02s";
  const Stopwatch watch;
  const auto from_get = thrown_by([&] { value.get<int>({.timeout = 20ms}); });
  CHECK(watch.seconds() >= 0.02 - clock_slack);
  CHECK(error_type_name(from_get) == "TimeoutError");
  CHECK(error_message(from_get) == expired);
  CHECK(error_message(thrown_by([&] { value.wait({.timeout = 20ms}); })) == expired);
  CHECK(outcome(value) == "started");

  const auto broken = result_of(event, "broken");
  broken.wait();
  CHECK(error_message(thrown_by([&] { broken.get<int>(); })) == "broken");
  CHECK_FALSE(result_of(event, "nothing").get<int>().has_value());
  gate.open();
  CHECK(value.get<int>() == 3);
  value.wait({.timeout = 1ns});
}

TEST_CASE("the awaitable twins mean the same as the blocking forms", "[T-CNV-9]") {
  Gate gate;
  EventBus bus("Twins");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto event = bus.emit(Job{});
  CHECK(error_message(thrown_by([&] { event.wait_async({.timeout = 20ms}).get(); })) ==
        "Timed out waiting for Job completion after 0.02s");
  CHECK(error_message(thrown_by([&] { event.now_async({.timeout = 20ms, .first_result = true}).get(); })) ==
        "Timed out waiting for Job result after 0.02s");
  auto pending = event.now_async();
  CHECK_FALSE(pending.ready());
  CHECK_FALSE(pending.wait_for(1ms));
  gate.open();
  CHECK(pending.get() == event);
  CHECK(event.wait_async().get() == event);
}

TEST_CASE("a coroutine handler may use both forms of a wait", "[T-CNV-9]") {
  EventBus bus("TwinsInside");
  bus.on<Step>([](const Step& step) { return step.n; });
  bus.on<Job>([](Event<Job> event) -> task<int> {
    const auto first = event.emit(Step{1});
    const auto second = event.emit(Step{2});
    const auto blocking = first.wait();
    const auto awaited = co_await second.wait_async();
    co_return *blocking.event_results()[0].result_as<int>() * 10 + *awaited.event_results()[0].result_as<int>();
  });
  const auto event = bus.emit(Job{}).wait();
  REQUIRE(outcomes(event) == Texts{"completed"});
  CHECK(event.event_results()[0].result_as<int>() == 12);
}

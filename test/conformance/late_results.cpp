// What a handler does after its result was decided without it.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
struct Child {};
using Texts = std::vector<std::string>;

/// What can be read of a result.
struct Picture {
  std::string outcome, message;
  bool empty;
  std::optional<Timestamp> started, completed;
  friend bool operator==(const Picture&, const Picture&) = default;
};
Picture picture(const EventResult& result) {
  return {outcome(result), result.error_message(), !result.result_as<int>().has_value(), result.started_at(),
          result.completed_at()};
}

/// Says that a scope was left, in every way.
struct Leaving {
  Recorder& left;
  ~Leaving() { left.add("left"); }
};

}  // namespace

TEST_CASE("what a handler returns or throws too late is discarded without a trace", "[T-LATE-1]") {
  Gate gate;
  Recorder left;
  const CapturedLog log;
  std::vector<EventResult> results;
  std::vector<Picture> before;
  {
    EventBus bus("LateValues", {.event_concurrency = EventConcurrency::parallel});
    const OpenAtEnd open(gate);
    bus.on<Job>([&](const Job& job) -> int {
      const Leaving leaving{left};
      gate.wait();
      if (job.n == 2) throw Error("too late");
      if (job.n == 3) throw 17;
      return 1;
    });
    const EventOptions handler_limit{.event_handler_timeout = 20ms}, event_limit{.event_timeout = 20ms};
    for (int n = 1; n <= 3; ++n) {
      results.push_back(bus.emit(Job{n}, handler_limit).wait().event_results()[0]);
      results.push_back(bus.emit(Job{n}, event_limit).wait().event_results()[0]);
    }
    for (const auto& result : results) before.push_back(picture(result));
    REQUIRE(left.size() == 0);
    gate.open();
    CHECK(left.wait_for_size(6));
  }  // the destructor waits for the handlers
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(picture(results[i]) == before[i]);
    CHECK(before[i].outcome == (i % 2 == 0 ? "EventHandlerTimeoutError" : "EventHandlerAbortedError"));
    CHECK(before[i].empty);
  }
  CHECK(log.count("Error in event handler") == 0);
}

TEST_CASE("what a coroutine returns too late is discarded as well", "[T-LATE-1][T-CNV-8]") {
  Gate gate;
  Recorder left;
  std::vector<EventResult> results;
  std::vector<Picture> before;
  {
    EventBus bus("LateCoroutine", {.event_timeout = 20ms});
    const OpenAtEnd open(gate);
    bus.on<Job>([&](Event<Job>) -> task<int> {
      const Leaving leaving{left};
      gate.wait();
      co_return 1;
    });
    results.push_back(bus.emit(Job{}).wait().event_results()[0]);
    before.push_back(picture(results[0]));
    gate.open();
    CHECK(left.wait_for_size(1));
  }
  CHECK(picture(results[0]) == before[0]);
  CHECK(before[0].outcome == "EventHandlerAbortedError");
}

TEST_CASE("an emit on a destroyed bus throws, from a stale run too", "[T-LATE-5]") {
  Gate gate;
  Recorder caught;
  EventBus bus("LateOwn", {.event_timeout = 20ms}), other("LateOther");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Event<Job>& event) {
    gate.wait();
    caught.add(error_name(thrown_by([&] { other.emit(Child{}); })));
    caught.add(error_name(thrown_by([&] { bus.emit(Child{}); })));
    bus.destroy();
    caught.add(error_name(thrown_by([&] { bus.emit(Child{}); })));
    caught.add(error_name(thrown_by([&] { event.emit(Child{}); })));
  });
  const auto event = bus.emit(Job{}).wait();
  REQUIRE(outcomes(event) == Texts{"EventHandlerAbortedError"});
  other.destroy();
  gate.open();
  REQUIRE(caught.wait_for_size(4));
  CHECK(caught.notes()[0] == "EventBusDestroyedError");
  CHECK(caught.notes()[1] == "");
  CHECK(caught.notes()[2] == "EventBusDestroyedError");
  CHECK(caught.notes()[3] == "EventBusDestroyedError");
}

TEST_CASE("who sees the stop request sees a terminal result, and emits nothing any more", "[T-LATE-6]") {
  std::atomic<int> rounds{0}, open_results{0}, accepted{0};
  EventBus bus("LateOrder", {.event_concurrency = EventConcurrency::parallel, .event_timeout = 60ms});
  bus.on<Job>([&](const Event<Job>& event, std::stop_token token) {
    if (!wait_until_stopped(token)) return;
    const auto status = event.event_results()[0].status();
    const auto child = event.emit(Child{});
    const auto direct = bus.emit(Child{});
    if (status != EventResultStatus::error) ++open_results;
    if (!child.event_path().empty() || !direct.event_path().empty()) ++accepted;
    ++rounds;
  });
  std::vector<Event<Job>> events;
  for (int n = 0; n < 20; ++n) events.push_back(bus.emit(Job{n}));
  for (const auto& event : events) event.wait();
  CHECK(eventually([&] { return rounds == 20; }));
  CHECK(open_results == 0);
  CHECK(accepted == 0);
  CHECK(bus.event_history().size() == 20);
}

TEST_CASE("stopping cooperatively changes nothing, cancelling of one's own accord is an error", "[T-CAN-14]") {
  Recorder left;
  std::vector<EventResult> results;
  {
    EventBus bus("LateCooperative", {.event_timeout = 20ms});
    bus.on<Job>([&](const Job& job, std::stop_token token) -> int {
      const Leaving leaving{left};
      wait_until_stopped(token);
      if (job.n == 1) throw OperationCancelled("stopped as asked");
      if (job.n == 2) this_handler::throw_if_stopped();
      return 3;
    });
    for (int n = 1; n <= 3; ++n) results.push_back(bus.emit(Job{n}).wait().event_results()[0]);
    CHECK(left.wait_for_size(3));
  }
  for (const auto& result : results) {
    CHECK(outcome(result) == "EventHandlerAbortedError");
    CHECK(result.error_message() == "Aborted running handler due to event timeout");
    CHECK_FALSE(result.result_as<int>().has_value());
  }

  EventBus bus("LateOwnAccord");
  bus.on<Job>([](const Job&) { throw OperationCancelled("nobody asked"); });
  bus.on<Job>([](const Job&) {
    this_handler::throw_if_stopped();
    return 1;
  });
  const auto event = bus.emit(Job{}).wait();
  CHECK(outcomes(event) == Texts{"OperationCancelled", "completed"});
  CHECK(event.event_results()[0].error_message() == "nobody asked");
}

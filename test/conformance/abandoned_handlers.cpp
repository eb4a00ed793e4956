// Handlers that ignore the stop request: nothing waits for them.

#include "support/catch.hpp"
#include "support/results.hpp"
#include "support/subprocess.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
struct Child {};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("an abandoned run holds nothing back", "[T-CAN-20][T-CAN-24]") {
  const auto concurrency = GENERATE(EventConcurrency::global_serial, EventConcurrency::bus_serial);
  Gate gate;
  std::atomic<int> left{0};
  EventBus bus("Abandoned_" + std::to_string(static_cast<int>(concurrency)),
               {.event_concurrency = concurrency, .event_timeout = 40ms});
  EventBus other("AbandonedOther_" + std::to_string(static_cast<int>(concurrency)), {.event_concurrency = concurrency});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) gate.wait(), ++left;
  });
  other.on<Job>([](const Job&) { return 2; });
  const Stopwatch watch;
  const auto stuck = bus.emit(Job{1});
  const auto next = bus.emit(Job{2}, {.event_timeout = 20s});
  const auto elsewhere = other.emit(Job{2});
  stuck.now();
  next.wait();
  elsewhere.wait();
  CHECK(bus.wait_until_idle());
  CHECK(watch.seconds() >= 0.04 - clock_slack);
  CHECK(watch.seconds() < promptly);
  CHECK(left == 0);
  CHECK(bus.is_idle());
  CHECK(bus.is_idle_and_queue_empty());
  CHECK(outcomes(stuck) == Texts{"EventHandlerAbortedError"});
  CHECK(outcomes(next) == Texts{"completed"});
  CHECK(outcomes(elsewhere) == Texts{"completed"});
}

TEST_CASE("an abandoned handler passes its serial turn on", "[T-CAN-20]") {
  Gate gate;
  EventBus bus("AbandonedTurn", {.event_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_timeout = 30ms});
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_timeout = 30ms});
  bus.on<Job>([](const Job&) { return 3; });
  const auto event = bus.emit(Job{}).wait();
  CHECK(outcomes(event) == Texts{"EventHandlerTimeoutError", "EventHandlerTimeoutError", "completed"});
  CHECK(gate.wait_for_arrivals(2));
}

TEST_CASE("one worker suffices: a spare takes over from a blocked one", "[T-CAN-21]") {
  Gate gate;
  std::atomic<bool> left{false};
  EventBus bus("OneWorker", {.event_timeout = 50ms, .executor = Executor(ExecutorOptions{.workers = 1})});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) gate.wait(), left = true;
    return job.n;
  });
  const Stopwatch watch;
  bus.emit(Job{1});
  const auto second = bus.emit(Job{2}, {.event_timeout = 20s}).wait();
  CHECK(watch.seconds() < promptly);
  CHECK(outcomes(second) == Texts{"completed"});
  CHECK_FALSE(left);
}

TEST_CASE("blocked handlers do not use the pool up", "[T-CAN-21]") {
  Gate gate;
  EventBus bus("ManyBlocked", {.event_concurrency = EventConcurrency::parallel,
                               .event_timeout = 0s,
                               .executor = Executor(ExecutorOptions{.workers = 1})});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) gate.wait();
  });
  for (int n = 0; n < 12; ++n) bus.emit(Job{1});
  // Nobody leaves before all are in.
  CHECK(gate.wait_for_arrivals(12));
  bus.emit(Job{2}).wait();
  gate.open();
  CHECK(bus.wait_until_idle());
}

TEST_CASE("an abandoned run may go on using everything, whatever is gone", "[T-CAN-23]") {
  const auto gate = std::make_shared<Gate>();
  const auto seen = std::make_shared<Recorder>();
  {
    EventBus bus("AbandonedAlone", {.event_timeout = 20ms, .destroy_grace = 0s});
    const EventBusRef ref = bus;
    bus.on<Job>([gate, seen, ref](const Event<Job>& event, std::stop_token token) {
      gate->wait();
      seen->add(event.event_type() + std::to_string(event->n));
      seen->add(outcome(event.event_results()[0]));
      seen->add(ref.label() + event.event_path()[0]);
      seen->add(token.stop_requested() && this_handler::stop_requested() ? "stopped" : "not stopped");
      seen->add(error_name(thrown_by([&] { ref.emit(Child{}); })));
      seen->add(error_name(thrown_by([&] { event.emit(Child{}); })));
      seen->add(ref.is_destroyed() ? "destroyed" : "alive");
      event.event_children();
      event.event_errors();
      ref.options();
      ref.handlers();
      seen->add("end");
    });
    bus.emit(Job{4}).wait();
    REQUIRE(gate->wait_for_arrivals(1));
  }
  gate->open();
  REQUIRE(seen->wait_for_size(8));
  const auto notes = seen->notes();
  CHECK(notes[0] == "Job4");
  CHECK(notes[1] == "EventHandlerAbortedError");
  CHECK(notes[3] == "stopped");
  CHECK(notes[4] == "EventBusDestroyedError");
  CHECK(notes[5] == "EventBusDestroyedError");
  CHECK(notes[6] == "destroyed");
  CHECK(notes[7] == "end");
}

TEST_CASE("more than 64 abandoned runs are worth one warning", "[T-CAN-23]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("AbandonedMany", {.event_concurrency = EventConcurrency::parallel, .event_timeout = 0.3s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  std::vector<Event<Job>> events;
  const auto abandon = [&](int count) {
    const auto before = static_cast<int>(events.size());
    for (int n = 0; n < count; ++n) events.push_back(bus.emit(Job{}));
    gate.wait_for_arrivals(before + count);
    bus.wait_until_idle();
  };
  abandon(60);
  CHECK(log.lines().empty());
  abandon(12);
  CHECK(eventually([&] { return !log.lines().empty(); }));
  abandon(4);
  CHECK(log.lines().size() == 1);
}

TEST_CASE("subprocess leaves a handler behind that never ends", "[.]") {
  // Run alone, by the next test: the process must end although this handler never does.
  const auto gate = std::make_shared<Gate>();
  EventBus bus("NeverEnds", {.event_timeout = 20ms, .destroy_grace = 0s});
  bus.on<Job>([gate](const Job&) { gate->wait(std::chrono::hours(1)); });
  const auto event = bus.emit(Job{}).wait();
  REQUIRE(outcomes(event) == Texts{"EventHandlerAbortedError"});
  REQUIRE(gate->wait_for_arrivals(1));
}

TEST_CASE("abandoned threads do not hold up the end of the process", "[T-CAN-34]") {
  const Stopwatch watch;
  CHECK(run_in_subprocess("subprocess leaves a handler behind that never ends") == 0);
  CHECK(watch.seconds() < 60);
}

// What every run cut short has in common: the event completes, waiters are released, results are final.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
struct Child {
  static constexpr auto event_concurrency = EventConcurrency::parallel;
};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("waiters of every kind are released at the deadline, though the handler goes on", "[T-TMO-31][T-CNV-6]") {
  Gate gate;
  std::atomic<bool> left{false};
  EventBus bus("TmoWaiters", {.event_timeout = 60ms});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) {
    gate.wait();
    left = true;
  });
  Recorder released;
  const Stopwatch watch;
  const auto event = bus.emit(Job{});
  {
    auto by_future = event.wait_async();
    const std::jthread a([&] { event.now(), released.add("now"); });
    const std::jthread b([&] { event.wait(), released.add("wait"); });
    const std::jthread c([&] {
      if (thrown_by([&] { event.event_results_list<int>(); })) released.add("list");
    });
    const std::jthread d([&] {
      if (bus.wait_until_idle()) released.add("idle");
    });
    by_future.get();
    CHECK(released.wait_for_size(4));
  }
  CHECK(watch.seconds() >= 0.06 - clock_slack);
  CHECK(watch.seconds() < promptly);
  CHECK_FALSE(left);
  CHECK(event.event_status() == EventStatus::completed);
  REQUIRE(event.event_completed_at().has_value());
  CHECK(event.event_completed_at()->time() >= event.event_results()[0].completed_at()->time());
}

TEST_CASE("a result cancelled while pending has both times, the moment of the cancellation", "[T-TMO-32]") {
  Gate gate;
  EventBus bus("TmoCancelledTimes", {.event_timeout = 40ms});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  bus.on<Job>([](const Job&) {});
  const auto event = bus.emit(Job{}).wait();
  const auto pending = event.event_results()[1];
  REQUIRE(outcome(pending) == "EventHandlerCancelledError");
  REQUIRE(pending.started_at().has_value());
  REQUIRE(pending.completed_at().has_value());
  CHECK(pending.started_at()->time() <= pending.completed_at()->time());
  CHECK(pending.completed_at()->time() - pending.started_at()->time() < 30ms);
  CHECK(pending.started_at()->time() - event.event_started_at()->time() >= 38ms);
  CHECK(pending.completed_at()->time() <= event.event_completed_at()->time());
}

TEST_CASE("deadline and return race: one wins, nothing in between is ever seen", "[T-TMO-34]") {
  EventBus bus("TmoRace", {.max_history_size = std::nullopt});
  bus.on<Job>([](const Job& job) {
    // Ends around the deadline: from 1 to 3 ms.
    const auto end = Clock::now() + 1ms + job.n * 20us;
    while (Clock::now() < end) std::this_thread::yield();
    return job.n;
  });
  std::vector<Event<Job>> events;
  int mixed = 0, value = 0, aborted = 0;
  const auto judge = [&](const EventResult& result, int n) {
    const auto status = result.status();
    const bool is_value = result.result_as<int>() == n;
    const bool is_error = result.error() != nullptr;
    if (status == EventResultStatus::completed) {
      ++value;
      if (!is_value || is_error || !result.completed_at()) ++mixed;
    } else if (status == EventResultStatus::error) {
      ++aborted;
      if (is_value || !is_error || !result.completed_at()) ++mixed;
    }
  };
  for (int n = 0; n < 100; ++n) {
    events.push_back(bus.emit(Job{n}, {.event_timeout = 2ms}));
    while (events.back().event_status() != EventStatus::completed) {
      if (const auto results = events.back().event_results(); !results.empty()) judge(results[0], n);
    }
  }
  CHECK(mixed == 0);
  // Nothing changes afterwards either: the losing side is a no-op.
  std::vector<Texts> before;
  for (const auto& event : events) before.push_back(outcomes(event));
  std::this_thread::sleep_for(5ms);
  bus.wait_until_idle();
  value = aborted = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(outcomes(events[i]) == before[i]);
    judge(events[i].event_results()[0], static_cast<int>(i));
  }
  CHECK(mixed == 0);
  CHECK(value + aborted == 100);
  CHECK(aborted > 0);
}

TEST_CASE("running, pending and settled are one result's states", "[T-CNV-4][T-HND-12]") {
  Gate gate;
  EventBus bus("TmoStates");
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) { return 1; });
  bus.on<Job>([&](const Job&) { gate.wait(); });
  bus.on<Job>([](const Job&) { throw Error("last"); });
  const auto event = bus.emit(Job{});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(outcomes(event) == Texts{"completed", "started", "pending"});
  const auto results = event.event_results();
  CHECK(results[0].completed_at().has_value());
  CHECK(results[1].started_at().has_value());
  CHECK_FALSE(results[1].completed_at().has_value());
  CHECK_FALSE(results[2].started_at().has_value());
  CHECK_FALSE(results[2].completed_at().has_value());
  CHECK_FALSE(results[2].error());
  gate.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"completed", "completed", "Error"});
  CHECK(results[1].started_at()->time() <= results[1].completed_at()->time());
  CHECK(results[1].completed_at()->time() <= results[2].started_at()->time());
}

TEST_CASE("an emitted child, or one awaited passively, does not block its parent", "[T-CNV-5]") {
  EventBus bus("CnvBlocking");
  bus.on<Child>([](const Child&) {});
  bus.on<Job>([](const Event<Job>& event) {
    event.emit(Child{});
    event.emit(Child{}).wait();
  });
  const auto parent = bus.emit(Job{}).wait();
  const auto children = parent.event_children();
  REQUIRE(children.size() == 2);
  CHECK_FALSE(children[0].event_blocks_parent_completion());
  CHECK_FALSE(children[1].event_blocks_parent_completion());
}

// How a handler learns that its run was cut short.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
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
  int n = 0;
};
using Texts = std::vector<std::string>;
constexpr auto parallel_handlers = EventHandlerConcurrency::parallel;
constexpr auto first = EventHandlerCompletion::first;

/// A token that a handler hands out.
class Shown {
 public:
  void set(std::stop_token token) {
    const std::lock_guard lock(mutex_);
    token_ = std::move(token);
  }
  std::stop_token get() const {
    const std::lock_guard lock(mutex_);
    return token_;
  }

 private:
  mutable std::mutex mutex_;
  std::stop_token token_;
};

std::atomic<bool> function_saw_token{false};
void plain_function(const Job&, std::stop_token token) {
  function_saw_token = token == this_handler::stop_token();
}

}  // namespace

TEST_CASE("stop is requested when a run is cut short, whatever cut it", "[T-CAN-1]") {
  Recorder stopped;
  Gate winner;
  EventBus bus("StopReasons", {.event_concurrency = EventConcurrency::parallel}), ended("StopDestroy");
  const OpenAtEnd open(winner);
  const auto body = [&](const Job& job, std::stop_token token) {
    if (job.n == 3) winner.open();
    if (wait_until_stopped(token)) stopped.add(std::to_string(job.n));
  };
  bus.on<Job>(body);
  ended.on<Job>(body);
  const auto by_handler = bus.emit(Job{1}, {.event_handler_timeout = 20ms}).wait();
  CHECK(stopped.wait_for_size(1));
  const auto by_event = bus.emit(Job{2}, {.event_timeout = 20ms}).wait();
  CHECK(stopped.wait_for_size(2));

  bus.on<Job>([&](const Job&) {
    winner.wait();
    return 1;
  });
  const auto by_first =
      bus.emit(Job{3}, {.event_handler_concurrency = parallel_handlers, .event_handler_completion = first}).wait();
  CHECK(stopped.wait_for_size(3));

  const auto by_destroy = ended.emit(Job{4});
  CHECK(eventually([&] { return outcomes(by_destroy) == Texts{"started"}; }));
  ended.destroy();
  CHECK(stopped.wait_for_size(4));
  CHECK(stopped.notes() == Texts{"1", "2", "3", "4"});
  CHECK(outcomes(by_handler) == Texts{"EventHandlerTimeoutError"});
  CHECK(outcomes(by_event) == Texts{"EventHandlerAbortedError"});
  CHECK(outcomes(by_first)[0] == "EventHandlerAbortedError");
  CHECK(outcomes(by_destroy) == Texts{"EventHandlerAbortedError"});
}

TEST_CASE("a run that ends by itself is never asked to stop", "[T-CAN-1]") {
  Shown returned, failed, loser;
  EventBus bus("StopNever");
  bus.on<Job>([&](const Job&, std::stop_token token) { returned.set(token); });
  bus.on<Job>([&](const Job&, std::stop_token token) {
    failed.set(token);
    throw Error("by itself");
  });
  bus.emit(Job{}, {.event_timeout = 0.3s}).wait();
  bus.off<Job>();
  // A handler that settled before the winner is no loser.
  bus.on<Job>([&](const Job&, std::stop_token token) { loser.set(token); });
  bus.on<Job>([](const Job&) { return 1; });
  bus.emit(Job{}, {.event_handler_completion = first}).wait();
  std::this_thread::sleep_for(400ms);
  CHECK_FALSE(returned.get().stop_requested());
  CHECK_FALSE(failed.get().stop_requested());
  CHECK_FALSE(loser.get().stop_requested());
  bus.destroy();
  CHECK_FALSE(returned.get().stop_requested());
}

TEST_CASE("every handler form may take the run's token", "[T-CAN-2]") {
  std::atomic<int> same{0};
  EventBus bus("StopForms");
  const auto note = [&](const std::stop_token& token) {
    if (token.stop_possible() && token == this_handler::stop_token()) ++same;
  };
  bus.on<Job>([&](const Job&, std::stop_token token) { note(token); });
  bus.on<Job>([&](Event<Job>, std::stop_token token) { note(token); });
  bus.on<Job>([&](const Event<Job>&, std::stop_token token) { note(token); });
  bus.on<Job>([&](const BaseEvent&, std::stop_token token) { note(token); });
  bus.on([&](const Job&, const std::stop_token& token) { note(token); });
  bus.on("Job", [&](BaseEvent, std::stop_token token) { note(token); });
  bus.on("Job", [&](const Job&, std::stop_token token) { note(token); });
  bus.on("*", [&](const BaseEvent&, std::stop_token token) { note(token); });
  bus.on<Job>([&](Event<Job>, std::stop_token token) -> task<> {
    note(token);
    co_return;
  });
  bus.on<Job>(&plain_function);
  const auto event = bus.emit(Job{}).wait();
  CHECK(outcomes(event) == Texts(10, "completed"));
  CHECK(same == 9);
  CHECK(function_saw_token);
}

TEST_CASE("this_handler knows the run's token inside a run and none outside", "[T-CAN-3]") {
  CHECK_FALSE(this_handler::stop_token().stop_possible());
  CHECK_FALSE(this_handler::stop_requested());
  this_handler::throw_if_stopped();
  Recorder seen;
  EventBus bus("StopThisHandler", {.event_timeout = 30ms});
  bus.on<Job>([&](const Job&) {
    seen.add(this_handler::stop_requested() ? "stopped" : "running");
    wait_until_stopped(this_handler::stop_token());
    seen.add(this_handler::stop_requested() ? "stopped" : "running");
    seen.add(error_name(thrown_by([] { this_handler::throw_if_stopped(); })));
    seen.add(error_name(thrown_by([] { this_handler::sleep_for(10s); })));
  });
  const Stopwatch watch;
  bus.emit(Job{}).wait();
  CHECK(seen.wait_for_size(4));
  CHECK(watch.seconds() < 9.0);
  CHECK(seen.notes() == Texts{"running", "stopped", "OperationCancelled", "OperationCancelled"});
  CHECK_FALSE(this_handler::stop_token().stop_possible());
}

TEST_CASE("this_handler::sleep_for ends early when the run is cut short", "[T-CAN-3]") {
  Recorder seen;
  EventBus bus("StopSleep", {.event_timeout = 40ms});
  bus.on<Job>([&](const Job&) {
    const Stopwatch watch;
    this_handler::sleep_for(10ms);
    if (watch.seconds() >= 0.01 - clock_slack) seen.add("slept");
    seen.add(error_name(thrown_by([] { this_handler::sleep_for(15s); })));
    seen.add(watch.seconds() < 10 ? "early" : "late");
  });
  bus.emit(Job{}).wait();
  CHECK(seen.wait_for_size(3));
  CHECK(seen.notes() == Texts{"slept", "OperationCancelled", "early"});
  const Stopwatch watch;
  this_handler::sleep_for(10ms);
  CHECK(watch.seconds() >= 0.01 - clock_slack);
}

TEST_CASE("a nested run sees its own token, the outer one afterwards", "[T-CAN-3]") {
  Shown outer_before, outer_after, inner;
  std::atomic<int> possible{0};  // asked inside: a token whose run is over cannot be stopped any more
  EventBus bus("StopNested", {.event_timeout = 0s});
  const auto show = [&](Shown& shown) {
    shown.set(this_handler::stop_token());
    if (shown.get().stop_possible()) ++possible;
  };
  bus.on<Child>([&](const Child&) { show(inner); });
  bus.on<Job>([&](const Event<Job>& event) {
    show(outer_before);
    event.emit(Child{}).now();
    outer_after.set(this_handler::stop_token());
  });
  bus.emit(Job{}).now();
  CHECK(possible == 2);
  CHECK(outer_before.get() == outer_after.get());
  CHECK_FALSE(inner.get() == outer_before.get());
  CHECK_FALSE(this_handler::stop_token().stop_possible());
}

TEST_CASE("a coroutine keeps its token over suspension, and so does what it awaits", "[T-CAN-3]") {
  Gate gate;
  Shown before, after, awaited;
  std::atomic<bool> possible{false};
  EventBus bus("StopCoroutine", {.event_concurrency = EventConcurrency::parallel});
  const OpenAtEnd open(gate);
  bus.on<Child>([&](const Child&) { gate.wait(); });
  const auto helper = [&](Event<Child> child) -> task<int> {
    co_await child.wait_async();
    awaited.set(this_handler::stop_token());
    co_return 1;
  };
  bus.on<Job>([&](Event<Job> event, std::stop_token) -> task<> {
    before.set(this_handler::stop_token());
    possible = before.get().stop_possible();
    const auto child = event.emit(Child{});
    co_await helper(child);
    after.set(this_handler::stop_token());
  });
  const auto event = bus.emit(Job{});
  CHECK(gate.wait_for_arrivals(1));
  gate.open();
  event.wait();
  CHECK(possible);
  CHECK(before.get() == after.get());
  CHECK(before.get() == awaited.get());
}

TEST_CASE("at every end: result, stop, next handler, completion, trimming, waiters, lock", "[T-CAN-4]") {
  Gate gate;
  Shown late;
  Recorder seen;
  EventBus bus("StopOrder", {.max_history_size = 0});
  const OpenAtEnd open(gate);
  bus.on<Job>(
      [&](const Job& job, std::stop_token token) {
        if (job.n == 2) return;
        late.set(token);
        gate.wait();
      },
      {.handler_name = "late"});
  bus.on<Job>(
      [&](const Event<Job>& event) {
        if (event->n == 2) return;
        seen.add(late.get().stop_requested() ? "stopped before the next handler" : "not stopped");
        seen.add(outcome(result_of(event, "late")));
      },
      {.handler_name = "next"});
  const auto event = bus.emit(Job{1}, {.event_handler_timeout = 0.1s});
  const auto following = bus.emit(Job{2});
  event.wait();
  CHECK(seen.notes() == Texts{"stopped before the next handler", "EventHandlerTimeoutError"});
  CHECK(event.event_status() == EventStatus::completed);
  CHECK_FALSE(bus.event_history().has_event(event.event_id()));
  following.wait();
  CHECK(following.event_started_at()->time() >= event.event_completed_at()->time());

  // A run cut short by the event's deadline: its waiters see the stop requested and the event gone from the history.
  bus.off<Job>();
  bus.on<Job>([&](const Job&, std::stop_token token) {
    late.set(token);
    gate.wait();
  });
  for (int n = 0; n < 10; ++n) {
    const auto cut = bus.emit(Job{1}, {.event_timeout = 20ms}).wait();
    CHECK(late.get().stop_requested());
    CHECK(bus.event_history().size() == 0);
  }
}

TEST_CASE("stop callbacks run outside locks and off the deadline watcher, and may call the library", "[T-CAN-5]") {
  Gate handlers, callback;
  Recorder called;
  std::atomic<std::size_t> path{99};
  EventBus bus("StopCallback", {.event_concurrency = EventConcurrency::parallel, .event_timeout = 30ms});
  const OpenAtEnd open(handlers, callback);
  bus.on<Job>([&](const Event<Job>& event, std::stop_token token) {
    if (event->n == 1) {
      const std::stop_callback notify(token, [&] {
        path = bus.emit(Job{3}).event_path().size();
        bus.is_idle();
        bus.on("Unused", [](BaseEvent) {});
        this_handler::stop_requested();
        called.add(outcome(event.event_results()[0]));
        callback.wait();
      });
      handlers.wait();
      return;
    }
    handlers.wait();
  });
  const auto noisy = bus.emit(Job{1});
  CHECK(called.wait_for_size(1));
  CHECK(called.notes() == Texts{"EventHandlerAbortedError"});
  // The callback is still in there, and deadlines are watched all the same.
  const auto other = bus.emit(Job{2}).wait({.timeout = 10s});
  CHECK(outcomes(other) == Texts{"EventHandlerAbortedError"});
  callback.open();
  noisy.wait();
  CHECK(path == 0);
}

TEST_CASE("who lost against a first result, or its event's deadline, is asked to stop before the event completes",
          "[T-CAN-4]") {
  const bool race = GENERATE(true, false);
  EventBus bus("StopBeforeCompletion", {.event_handler_concurrency = parallel_handlers,
                                        .event_handler_completion = race ? first : EventHandlerCompletion::all,
                                        .event_timeout = race ? 10s : 3ms});
  std::atomic<int> waiting{0}, stopped{0};
  constexpr int losers = 3;
  for (int i = 0; i < losers; ++i) {
    bus.on<Job>([&](const Job&, std::stop_token token) -> std::optional<int> {
      const std::stop_callback count(token, [&] { ++stopped; });
      ++waiting;
      wait_until_stopped(token);
      return std::nullopt;
    });
  }
  bus.on<Job>([&](const Job&, std::stop_token token) -> std::optional<int> {
    // All have registered their callback.
    while (waiting.load() < losers && !token.stop_requested()) std::this_thread::yield();
    if (!race) wait_until_stopped(token);
    return 1;
  });
  int early = 0, counted = 0;
  for (int round = 0; round < 50; ++round) {
    waiting = stopped = 0;
    bus.emit(Job{round}).wait();
    // Whoever had a callback when it lost: in a race all three; a deadline may come before the handlers have begun.
    if (waiting.load() != losers) continue;
    ++counted;
    if (stopped.load() != losers) ++early;
    eventually([&] { return stopped.load() == losers; });
  }
  CHECK(early == 0);
  CHECK(counted > 0);
}

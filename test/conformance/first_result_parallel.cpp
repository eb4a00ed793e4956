// First-result completion, handlers side by side.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Race {
  using event_result_type = std::string;
};
struct Remark {};

EventBusOptions race_options() {
  return {.event_handler_concurrency = EventHandlerConcurrency::parallel,
          .event_handler_completion = EventHandlerCompletion::first};
}

}  // namespace

TEST_CASE("what completed before the winner keeps its result", "[S-FST-4][S-FST-2]") {
  Gate winner_gate;
  Gate loser_gate;
  EventBus bus("FstKept", race_options());
  bus.on<Race>([](const Race&) -> std::optional<std::string> { return std::nullopt; });
  bus.on<Race>([](const Race&) -> std::string { throw std::runtime_error("own error"); });
  bus.on<Race>([](const Race&) { return make_event(Remark{}); });
  bus.on<Race>([&](const Race&) -> std::string {
    winner_gate.wait();
    return "winner";
  });
  bus.on<Race>([&](const Race&) -> std::string {
    loser_gate.wait();
    return "loser";
  });
  OpenAtExit guard(winner_gate, loser_gate);

  auto event = bus.emit(Race{});
  REQUIRE(winner_gate.wait_for_arrivals(1));
  REQUIRE(loser_gate.wait_for_arrivals(1));
  REQUIRE(eventually([&] {
    return statuses(event) == Names{"completed", "error", "completed", "started", "started"};
  }));
  winner_gate.open();
  event.wait();

  REQUIRE(statuses(event) == Names{"completed", "error", "completed", "completed", "error"});
  const EventResults results = event.event_results();
  REQUIRE(results[1].error_message() == "own error");
  REQUIRE(results[2].event_value().has_value());
  REQUIRE(results[3].result_as<std::string>() == std::optional<std::string>("winner"));
  REQUIRE(results[4].error_type() == "EventHandlerAbortedError");
}

TEST_CASE("all handlers of a race start before it is decided", "[S-FST-4]") {
  constexpr int runners = 6;
  Gate all_there;
  EventBus bus("FstAllStart", race_options());
  for (int i = 0; i < runners; ++i)
    bus.on<Race>([&](const Race&) -> std::string {
      all_there.wait();
      return "value";
    });
  OpenAtExit guard(all_there);

  auto event = bus.emit(Race{});
  REQUIRE(all_there.wait_for_arrivals(runners));
  all_there.open();
  event.wait();
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("value"));
}

TEST_CASE("simultaneous finishers: one winner at least, everybody else settled", "[S-FST-4][S-FST-7]") {
  constexpr int runners = 4;
  std::atomic<int> arrived = 0;
  EventBus bus("FstPhotoFinish", race_options());
  for (int i = 0; i < runners; ++i)
    bus.on<Race>([&](const Race&) -> std::string {
      ++arrived;
      const auto end = Clock::now() + patience;
      while (arrived.load() < runners && Clock::now() < end) std::this_thread::yield();
      return "value";
    });

  for (int round = 0; round < 30; ++round) {
    arrived = 0;
    auto event = bus.emit(Race{}).wait();
    int winners = 0;
    bool settled = true;
    bool losers_named = true;
    for (const EventResult& result : event.event_results()) {
      if (result.status() == EventResultStatus::completed) {
        ++winners;
      } else {
        settled = settled && result.status() == EventResultStatus::error;
        losers_named = losers_named && result.error_message().find("first result resolved") != std::string::npos;
      }
    }
    REQUIRE(winners >= 1);
    REQUIRE(settled);
    REQUIRE(losers_named);
    REQUIRE(eventually([&] { return bus.is_idle_and_queue_empty(); }));
  }
}

TEST_CASE("a loser that runs is aborted, stopped and not waited for", "[S-FST-6][S-FST-7]") {
  Gate stubborn_gate;
  Gate all_there;
  std::atomic<bool> polite_stopped = false;
  std::atomic<bool> stubborn_ended = false;
  EventBus bus("FstAborted", race_options());
  bus.on<Race>([&](const Race&, std::stop_token stop) -> std::string {
    all_there.wait_for_arrivals(1);
    polite_stopped = wait_for_stop(stop);
    return "polite";
  });
  bus.on<Race>([&](const Race&) -> std::string {
    stubborn_gate.wait();
    stubborn_ended = true;
    return "stubborn";
  });
  bus.on<Race>([&](const Race&) -> std::string {
    stubborn_gate.wait_for_arrivals(1);
    all_there.wait();
    return "winner";
  });
  OpenAtExit guard(stubborn_gate, all_there);

  auto event = bus.emit(Race{});
  REQUIRE(stubborn_gate.wait_for_arrivals(1));
  REQUIRE(all_there.wait_for_arrivals(1));
  REQUIRE(eventually([&] { return statuses(event) == Names{"started", "started", "started"}; }));
  all_there.open();
  event.wait();

  REQUIRE_FALSE(stubborn_ended.load());
  const EventResults results = event.event_results();
  for (const std::size_t loser : {std::size_t{0}, std::size_t{1}}) {
    REQUIRE(results[loser].status() == EventResultStatus::error);
    REQUIRE(results[loser].error_type() == "EventHandlerAbortedError");
    REQUIRE(results[loser].error_message() == "Aborted: first result resolved");
    REQUIRE(*results[loser].completed_at() <= *event.event_completed_at());
  }
  REQUIRE(eventually([&] { return polite_stopped.load(); }));

  stubborn_gate.open();
  REQUIRE(eventually([&] { return stubborn_ended.load(); }));
  REQUIRE(statuses(event) == Names{"error", "error", "completed"});
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
}

TEST_CASE("a coroutine that loses the race is aborted like a plain handler", "[S-FST-6]") {
  Gate source_gate;
  std::atomic<bool> suspended = false;
  EventBus bus("FstCoroutineLoser", race_options());
  EventBus source("FstCoroutineSource");
  source.on<Remark>([&](const Remark&) { source_gate.wait(); });
  auto never = source.emit(Remark{});
  bus.on<Race>([&, never](const Race&) -> abxbus::task<std::string> {
    suspended = true;
    co_await never.wait_async();
    co_return "loser";
  });
  bus.on<Race>([&](const Race&) -> std::string {
    eventually([&] { return suspended.load(); });
    return "winner";
  });
  OpenAtExit guard(source_gate);

  auto event = bus.emit(Race{}).wait();

  REQUIRE(statuses(event) == Names{"error", "completed"});
  REQUIRE(event.event_results()[0].error_type() == "EventHandlerAbortedError");
  REQUIRE_FALSE(completed(never));
  source_gate.open();
  never.wait();
  REQUIRE(statuses(event) == Names{"error", "completed"});
}

TEST_CASE("losers are terminal whenever the event reads completed", "[S-FST-7]") {
  constexpr int rounds = 40;
  EventBus bus("FstOrder", race_options());
  for (int i = 0; i < 3; ++i)
    bus.on<Race>([](const Race&, std::stop_token stop) -> std::optional<std::string> {
      wait_for_stop(stop);
      return std::nullopt;
    });
  bus.on<Race>([](const Race&) -> std::string { return "winner"; });

  for (int round = 0; round < rounds; ++round) {
    auto event = bus.emit(Race{});
    REQUIRE(eventually([&] { return completed(event); }));
    bool all_terminal = true;
    for (const EventResult& result : event.event_results())
      all_terminal = all_terminal &&
                     (result.status() == EventResultStatus::completed || result.status() == EventResultStatus::error);
    REQUIRE(all_terminal);
  }
}

TEST_CASE("without a winner the race ends when the last handler has", "[S-FST-8]") {
  Gate gate;
  EventBus bus("FstNobodyParallel", race_options());
  bus.on<Race>([](const Race&) -> std::string { throw std::runtime_error("broken"); });
  bus.on<Race>([&](const Race&) { gate.wait(); });
  bus.on<Race>([](const Race&) { return make_event(Remark{}); });
  OpenAtExit guard(gate);

  auto event = bus.emit(Race{});
  REQUIRE(eventually([&] { return statuses(event) == Names{"error", "started", "completed"}; }));
  REQUIRE_FALSE(completed(event));
  gate.open();
  event.wait();

  REQUIRE(statuses(event) == Names{"error", "completed", "completed"});
  REQUIRE(event.event_results()[0].error_message() == "broken");
  REQUIRE(event.event_result({.raise_if_any = false}) == std::nullopt);
}

TEST_CASE("running losers count as handler errors for the accessor", "[S-FST-11][S-FST-13]") {
  Gate gate;
  std::atomic<bool> first_started = false;
  EventBus bus("FstPinnedB");
  bus.on<Race>([&](const Race&) -> std::string {
    first_started = true;
    gate.wait();
    return "slow";
  });
  bus.on<Race>([&](const Race&) -> std::string {
    eventually([&] { return first_started.load(); });
    return "winner";
  });
  bus.on<Race>([&](const Race&) -> std::string {
    gate.wait();
    return "slow";
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Race{}, {.event_handler_concurrency = EventHandlerConcurrency::parallel,
                                 .event_handler_completion = EventHandlerCompletion::first});
  event.wait();

  REQUIRE(first_started.load());
  REQUIRE(statuses(event) == Names{"error", "completed", "error"});
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
  REQUIRE_THROWS_AS(event.event_result(), EventHandlerErrors);
  REQUIRE_THROWS_WITH(event.event_result(), abxbus::test::contains("first result resolved"));
}

TEST_CASE("one handler throws at once, the other returns the winner", "[S-FST-13][S-FST-2]") {
  Gate gate;
  EventBus bus("FstPinnedE", race_options());
  bus.on<Race>([](const Race&) -> std::string { throw std::runtime_error("at once"); });
  bus.on<Race>([&](const Race&) -> std::string {
    gate.wait();
    return "winner";
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Race{});
  REQUIRE(eventually([&] { return statuses(event) == Names{"error", "started"}; }));
  gate.open();
  event.wait();

  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
  REQUIRE_THROWS_WITH(event.event_result(), "at once");
}

TEST_CASE("an unfinished race read through the accessor gives the value or the losers' error", "[S-FST-11]") {
  EventBus bus("FstInBetween", race_options());
  bus.on<Race>([](const Race&, std::stop_token stop) -> std::string {
    wait_for_stop(stop);
    return "loser";
  });
  bus.on<Race>([](const Race&) -> std::string { return "winner"; });

  for (int round = 0; round < 20; ++round) {
    auto event = bus.emit(Race{});
    std::string outcome;
    try {
      outcome = event.event_result().value_or("nothing");
    } catch (const EventHandlerError& error) {
      outcome = error.what();
    }
    const bool expected = outcome == "winner" || outcome.find("first result resolved") != std::string::npos;
    REQUIRE(expected);
    event.wait();
    REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
  }
}

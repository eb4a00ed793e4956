// now(): what it returns, what it throws, how often it runs handlers.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {
  using event_result_type = std::string;
};
struct Other {};

}  // namespace

TEST_CASE("now returns the event itself and never a handler's error", "[S-JMP-1]") {
  EventBus bus("NowReturns");
  bus.on<Work>([](const Work&) -> std::string { throw std::runtime_error("broken"); });
  bus.on<Work>([](const Work&) -> std::string { throw 7; });

  auto event = bus.emit(Work{});
  const auto returned = event.now();

  REQUIRE(returned == event);
  REQUIRE(completed(event));
  REQUIRE(statuses(event) == Names{"error", "error"});
  REQUIRE_THROWS_AS(event.event_result(), EventHandlerErrors);
}

TEST_CASE("now returns when every bus has finished the event", "[S-JMP-1]") {
  Gate gate;
  EventBus first("NowBothFirst");
  EventBus second("NowBothSecond");
  first.on<Work>([](const Work&) -> std::string { return "first"; });
  second.on<Work>([&](const Work&) -> std::string {
    gate.wait();
    return "second";
  });
  OpenAtExit guard(gate);
  auto event = second.emit(Work{});  // not over before the gate opens, so the other bus runs it too
  first.emit(event);
  Caller call([event] { event.now(); });

  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(call.still_blocked_after(30ms));
  REQUIRE(event.event_pending_bus_count() == 1);
  gate.open();
  REQUIRE(call.finishes());
  REQUIRE(call.error().empty());
  REQUIRE(statuses(event) == Names{"completed", "completed"});
}

TEST_CASE("a completed event returns at once", "[S-JMP-2][S-JMP-38]") {
  Gate gate;
  Recorder log;
  EventBus bus("NowCompleted");
  bus.on<Work>([&](const Work&) -> std::string {
    log.add("work");
    return "done";
  });
  bus.on<Other>([&](const Other&) {
    log.add("other");
    gate.wait();
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{}).now();
  bus.emit(Other{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto queued = bus.emit(Other{});
  REQUIRE(event.now() == event);
  REQUIRE(event.now({.timeout = 1s, .first_result = true}) == event);
  REQUIRE(queued.event_status() == EventStatus::pending);
  REQUIRE(bus.pending_event_queue() == std::vector<Uuid>{queued.event_id()});
  REQUIRE(log.notes() == Names{"work", "other"});
  gate.open();
  queued.wait();
  REQUIRE(log.notes() == Names{"work", "other", "other"});
}

TEST_CASE("a completed event returns at once though its bus is gone", "[S-JMP-2]") {
  Event<Work> event;
  {
    EventBus bus("NowBusGone");
    bus.on<Work>([](const Work&) -> std::string { return "done"; });
    event = bus.emit(Work{}).now();
  }
  REQUIRE(event.now() == event);
  REQUIRE(event.wait() == event);
  REQUIRE(event.event_result() == std::optional<std::string>("done"));
}

TEST_CASE("a completed event returns at once to an abandoned handler", "[S-JMP-2]") {
  Recorder log;
  EventBus bus("NowAbandonedCompleted");
  EventBus other("NowAbandonedOther");
  auto done = other.emit(Other{}).now();
  bus.on<Work>(
      [&, done](const Work&, std::stop_token stop) -> std::string {
        wait_for_stop(stop);
        log.add(thrown_by([&] { done.now(); }));
        return "late";
      },
      {.handler_timeout = 20ms});

  bus.emit(Work{}).now();
  REQUIRE(log.wait_for_size(1));
  REQUIRE(log.notes() == Names{""});
}

TEST_CASE("an event without a bus cannot be awaited", "[S-JMP-3]") {
  const auto event = make_event(Work{});
  REQUIRE(thrown_by([&] { event.now(); }) == "ValidationError: event has no bus attached");
  REQUIRE(thrown_by([&] { event.now({.timeout = 1s, .first_result = true}); }) ==
          "ValidationError: event has no bus attached");
  REQUIRE(thrown_by([&] { event.event_result(); }) == "ValidationError: event has no bus attached");
  REQUIRE(event.event_status() == EventStatus::pending);
  REQUIRE(event.event_path().empty());

  EventBus bus("NowAttachedLater");
  bus.on<Work>([](const Work&) -> std::string { return "done"; });
  REQUIRE(bus.emit(event).now() == event);
}

TEST_CASE("an abandoned caller is told before anything about the event", "[S-JMP-3]") {
  Recorder log;
  EventBus bus("NowAbandonedUnattached");
  bus.on<Work>(
      [&](const Work&, std::stop_token stop) -> std::string {
        wait_for_stop(stop);
        log.add(thrown_by([] { make_event(Other{}).now(); }).substr(0, 18));
        log.add(thrown_by([] { make_event(Other{}).now({.timeout = -1s}); }));
        return "late";
      },
      {.handler_timeout = 20ms});

  bus.emit(Work{}).now();
  REQUIRE(log.wait_for_size(2));
  REQUIRE(log.notes() == Names{"OperationCancelled", "ValidationError: timeout must be >= 0 or null"});
}

TEST_CASE("a negative timeout is rejected before anything else", "[S-JMP-4]") {
  const std::string expected = "ValidationError: timeout must be >= 0 or null";
  std::atomic<int> calls = 0;
  EventBus bus("NowNegative");
  bus.on<Work>([&](const Work&) -> std::string {
    ++calls;
    return "done";
  });

  const auto unattached = make_event(Work{});
  REQUIRE(thrown_by([&] { unattached.now({.timeout = -1s}); }) == expected);
  auto event = bus.emit(Work{}).now();
  REQUIRE(thrown_by([&] { event.now({.timeout = -1ms}); }) == expected);
  REQUIRE(thrown_by([&] { event.now({.timeout = -0.5s, .first_result = true}); }) == expected);
  REQUIRE(calls == 1);
  bus.destroy();
  REQUIRE(thrown_by([&] { event.now({.timeout = -1s}); }) == expected);
}

TEST_CASE("no timeout and zero both wait without limit", "[S-JMP-4]") {
  Gate gate;
  EventBus bus("NowUnlimited");
  bus.on<Work>([&](const Work&) -> std::string {
    gate.wait();
    return "done";
  });
  auto event = bus.emit(Work{});
  Caller none([event] { event.now(); });
  Caller zero([event] { event.now({.timeout = 0s}); });
  OpenAtExit guard(gate);

  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(none.still_blocked_after(60ms));
  REQUIRE_FALSE(zero.finished());
  gate.open();
  REQUIRE(none.finishes());
  REQUIRE(zero.finishes());
  REQUIRE(none.error().empty());
  REQUIRE(zero.error().empty());
}

TEST_CASE("at the timeout the caller leaves and the handler goes on", "[S-JMP-5]") {
  Gate gate;
  std::atomic<bool> stopped = false;
  EventBus bus("NowTimeout");
  bus.on<Work>([&](const Work&, std::stop_token stop) -> std::string {
    gate.wait();
    stopped = stop.stop_requested();
    return "done";
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{});
  std::string error;
  const double seconds = duration_of([&] { error = thrown_by([&] { event.now({.timeout = 50ms}); }); });
  REQUIRE(error == "TimeoutError: Timed out waiting for Work completion after 0.05s");
  REQUIRE(seconds >= 0.05);
  REQUIRE(seconds < 3.0);
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(statuses(event) == Names{"started"});
  gate.open();
  REQUIRE(event.wait().event_result() == std::optional<std::string>("done"));
  REQUIRE_FALSE(stopped.load());
}

TEST_CASE("the timeout error carries its seconds and names the result with first_result", "[S-JMP-5][S-JMP-6]") {
  Gate gate;
  EventBus bus("NowTimeoutText");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{});
  std::optional<Seconds> carried;
  try {
    event.now({.timeout = 10ms});
  } catch (const TimeoutError& error) {
    carried = error.timeout_seconds();
  }
  REQUIRE(carried == std::optional<Seconds>(10ms));
  REQUIRE(thrown_by([&] { event.now({.timeout = 10ms, .first_result = true}); }) ==
          "TimeoutError: Timed out waiting for Work result after 0.01s");
}

TEST_CASE("first_result returns with the first usable value", "[S-JMP-6]") {
  Gate early_gate;
  Gate late_gate;
  std::atomic<bool> stopped = false;
  EventBus bus("NowFirst", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  bus.on<Work>([](const Work&) -> std::optional<std::string> { return std::nullopt; });
  bus.on<Work>([](const Work&) -> std::string { throw std::runtime_error("broken"); });
  bus.on<Work>([&](const Work&, std::stop_token stop) -> std::string {
    late_gate.wait();
    stopped = stop.stop_requested();
    return "late";
  });
  bus.on<Work>([&](const Work&) -> std::string {
    early_gate.wait();
    return "early";
  });
  auto event = bus.emit(Work{});
  Caller call([event] { event.now({.first_result = true}); });
  OpenAtExit guard(early_gate, late_gate);

  REQUIRE(early_gate.wait_for_arrivals(1));
  REQUIRE(late_gate.wait_for_arrivals(1));
  REQUIRE(call.still_blocked_after(30ms));
  early_gate.open();
  REQUIRE(call.finishes());
  REQUIRE(call.error().empty());
  REQUIRE(event.event_status() == EventStatus::started);
  REQUIRE(statuses(event) == Names{"completed", "error", "started", "completed"});
  late_gate.open();
  event.wait();
  REQUIRE(statuses(event) == Names{"completed", "error", "completed", "completed"});
  REQUIRE_FALSE(stopped.load());
}

TEST_CASE("first_result returns at completion when nothing is usable", "[S-JMP-6]") {
  EventBus bus("NowFirstNothing");
  bus.on<Work>([](const Work&) -> std::string { throw std::runtime_error("broken"); });
  bus.on<Work>([](const Work&) {});
  auto event = bus.emit(Work{});
  REQUIRE(event.now({.timeout = 15s, .first_result = true}) == event);
  REQUIRE(completed(event));
}

TEST_CASE("many callers, one invocation", "[S-JMP-7]") {
  constexpr int rounds = 20;
  constexpr int callers = 6;
  std::atomic<int> calls = 0;
  EventBus bus("NowMany", {.max_history_size = std::nullopt});
  bus.on<Work>([&](const Work&) -> std::string {
    ++calls;
    return "done";
  });
  bus.on<Work>([&](const Work&) -> abxbus::task<std::string> {
    ++calls;
    co_return "coroutine";
  });

  for (int round = 0; round < rounds; ++round) {
    auto event = bus.emit(Work{});
    std::atomic<int> same = 0;
    {
      std::vector<std::unique_ptr<Caller>> all;
      for (int i = 0; i < callers; ++i)
        all.push_back(std::make_unique<Caller>([&, event, i] {
          if ((i % 2 == 0 ? event.now() : event.wait()) == event) ++same;
        }));
    }
    REQUIRE(same == callers);
    REQUIRE(event.event_results().size() == 2);
    REQUIRE(calls == 2 * (round + 1));
  }
}

TEST_CASE("now joins a run that has started", "[S-JMP-7][S-JMP-35]") {
  Gate gate;
  std::atomic<int> calls = 0;
  EventBus bus("NowJoins");
  bus.on<Work>([&](const Work&) -> std::string {
    ++calls;
    gate.wait();
    return "done";
  });
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  Caller call([event] { event.now(); });
  OpenAtExit guard(gate);

  REQUIRE(call.still_blocked_after(50ms));
  REQUIRE(calls == 1);
  REQUIRE(thrown_by([&] { event.now({.timeout = 10ms}); }) ==
          "TimeoutError: Timed out waiting for Work completion after 0.01s");
  REQUIRE(statuses(event) == Names{"started"});
  gate.open();
  REQUIRE(call.finishes());
  REQUIRE(event.wait({.timeout = 15s}).event_result() == std::optional<std::string>("done"));
  REQUIRE(calls == 1);
}

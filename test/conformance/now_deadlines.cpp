// now(): on whose stack the event may run, and that deadlines are kept whatever handlers do.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {};
struct Nested {
  int level = 0;
};

/// Emits and awaits an event often enough for the caller to win the race against the bus's own drain, if it ever runs
/// handlers itself; true when a handler ran on this thread.
bool ever_runs_here(const EventBusRef& bus, const WaitOptions& wait, const EventOptions& event_options = {}) {
  std::atomic<bool> here = false;
  const auto caller = std::this_thread::get_id();
  const ScopedHandler handler(bus, bus.on<Work>([&here, caller](const Work&) {
    if (std::this_thread::get_id() == caller) here = true;
  }));
  for (int i = 0; i < 40; ++i) bus.emit(Work{}, event_options).now(wait);
  return here.load();
}

}  // namespace

TEST_CASE("now returns at the event deadline though the handler goes on", "[S-JMP-16]") {
  Gate gate;
  std::atomic<bool> ended = false;
  EventBus bus("JmpDeadline");
  bus.on<Work>([&](const Work&) {
    gate.wait();
    ended = true;
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{}, {.event_timeout = 50ms});
  const double seconds = duration_of([&] { event.now(); });
  REQUIRE(seconds < 4.0);
  REQUIRE_FALSE(ended.load());
  REQUIRE(completed(event));
  REQUIRE(statuses(event) == Names{"error"});
  REQUIRE(event.event_results()[0].error_type() == "EventHandlerAbortedError");
  gate.open();
  REQUIRE(eventually([&] { return ended.load(); }));
  REQUIRE(statuses(event) == Names{"error"});
}

TEST_CASE("now returns at the handler deadline though the handler goes on", "[S-JMP-16]") {
  Gate gate;
  EventBus bus("JmpHandlerDeadline");
  bus.on<Work>([&](const Work&) { gate.wait(); }, {.handler_timeout = 50ms});
  bus.on<Work>([](const Work&) { return 1; });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{});
  REQUIRE(duration_of([&] { event.now(); }) < 4.0);
  REQUIRE(statuses(event) == Names{"error", "completed"});
  REQUIRE(event.event_results()[0].error_type() == "EventHandlerTimeoutError");
}

TEST_CASE("a caller with a limit leaves on time", "[S-JMP-16][S-JMP-5]") {
  Gate gate;
  EventBus bus("JmpOwnLimit");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{});
  std::string error;
  const double seconds = duration_of([&] { error = thrown_by([&] { event.now({.timeout = 40ms}); }); });
  REQUIRE(error == "TimeoutError: Timed out waiting for Work completion after 0.04s");
  REQUIRE(seconds >= 0.04);
  REQUIRE(seconds < 3.0);
}

TEST_CASE("a caller with a stop token leaves when it is stopped", "[S-JMP-16]") {
  Gate gate;
  EventBus bus("JmpStopToken");
  std::stop_source source;
  bus.on<Work>([&](const Work&) { gate.wait(); });
  auto event = bus.emit(Work{});
  Caller call([event, token = source.get_token()] { event.now({.stop_token = token}); });
  OpenAtExit guard(gate);

  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(call.still_blocked_after(20ms));
  source.request_stop();
  REQUIRE(call.finishes());
  REQUIRE(call.error() == "OperationCancelled");
  REQUIRE(statuses(event) == Names{"started"});
}

TEST_CASE("a first-result caller leaves though another handler goes on", "[S-JMP-16]") {
  Gate gate;
  EventBus bus("JmpFirstLeaves", {.event_timeout = 0s});
  bus.on<Work>([](const Work&) { return 1; });
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{});
  event.now({.first_result = true});
  REQUIRE_FALSE(completed(event));
  gate.open();
  event.wait();
  REQUIRE(statuses(event) == Names{"completed", "completed"});
}

TEST_CASE("the winner of a race frees the caller though a loser goes on", "[S-JMP-16]") {
  Gate gate;
  EventBus bus("JmpRaceLeaves", {.event_handler_concurrency = EventHandlerConcurrency::parallel,
                                 .event_handler_completion = EventHandlerCompletion::first,
                                 .event_timeout = 0s});
  bus.on<Work>([&](const Work&) { gate.wait(); });
  bus.on<Work>([&](const Work&) {
    gate.wait_for_arrivals(1);
    return 1;
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Work{}).now();
  REQUIRE(statuses(event) == Names{"error", "completed"});
}

TEST_CASE("a floor of zero: never on the caller's stack", "[S-JMP-16]") {
  EventBus bus("JmpFloorZero", {.event_timeout = 0s, .inline_deadline_floor = 0s});
  REQUIRE_FALSE(ever_runs_here(bus, {}));
}

TEST_CASE("a call with a limit or a token: never on the caller's stack", "[S-JMP-16]") {
  EventBus bus("JmpNotInline", {.event_timeout = 0s});
  const std::stop_source source;
  REQUIRE_FALSE(ever_runs_here(bus, {.timeout = 15s}));
  REQUIRE_FALSE(ever_runs_here(bus, {.stop_token = source.get_token()}));
}

TEST_CASE("a deadline nearer than the floor: never on the caller's stack", "[S-JMP-16]") {
  EventBus near_by_bus("JmpNearBus", {.event_timeout = 9s});
  REQUIRE_FALSE(ever_runs_here(near_by_bus, {}));
  EventBus far("JmpNearEvent", {.event_timeout = 0s});
  REQUIRE_FALSE(ever_runs_here(far, {}, {.event_timeout = 5s}));
  EventBus floor("JmpHighFloor", {.event_timeout = 60s, .inline_deadline_floor = 100s});
  REQUIRE_FALSE(ever_runs_here(floor, {}));
  Executor executor({.workers = 2, .inline_deadline_floor = 100s});
  EventBus pool_floor("JmpHighPoolFloor", {.event_timeout = 60s, .executor = executor});
  REQUIRE_FALSE(ever_runs_here(pool_floor, {}));
}

TEST_CASE("an async call never runs a handler inside itself", "[S-JMP-16]") {
  std::atomic<bool> here = false;
  EventBus bus("JmpAsync", {.event_timeout = 0s});
  const auto caller = std::this_thread::get_id();
  bus.on<Work>([&, caller](const Work&) {
    if (std::this_thread::get_id() == caller) here = true;
  });
  for (int i = 0; i < 90; ++i) {
    auto event = bus.emit(Work{});
    auto future = event.now_async();
    const bool inside_the_call = here.load();
    REQUIRE_FALSE(inside_the_call);
    REQUIRE(future.get() == event);
    here = false;
  }
}

TEST_CASE("no depth of awaited children exhausts the stack", "[S-JMP-16]") {
  constexpr int depth = 150;
  std::atomic<int> ended = 0;
  EventBus bus("JmpDeep", {.event_timeout = 0s, .max_history_size = std::nullopt});
  const auto type_of = [](int level) { return "Level" + std::to_string(level); };
  for (int level = 0; level < depth; ++level)
    bus.on(type_of(level), [&, level](BaseEvent event) {
      volatile char stack_user[4 * 1024];
      stack_user[0] = 1;
      if (level + 1 < depth) event.emit(Nested{level + 1}, {.event_type = type_of(level + 1)}).now();
      stack_user[1] = stack_user[0];
      ++ended;
    });

  auto event = bus.emit(Nested{0}, {.event_type = type_of(0)});
  event.now();
  REQUIRE(ended == depth);
  REQUIRE(bus.wait_until_idle());
  REQUIRE(bus.events_completed().size() == static_cast<std::size_t>(depth));
}

// wait(): waiting without any influence on when and where the event runs.

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

struct Blocker {};
struct Target {
  using event_result_type = std::string;
};
struct Child {
  std::string name;
};

}  // namespace

TEST_CASE("wait returns the event itself and never a handler's error", "[S-WAIT-1]") {
  EventBus bus("WaitReturns");
  bus.on<Target>([](const Target&) -> std::string { throw std::runtime_error("broken"); });

  auto event = bus.emit(Target{});
  REQUIRE(event.wait() == event);
  REQUIRE(completed(event));
  REQUIRE(event.wait() == event);
  REQUIRE(event.wait({.timeout = 1s, .first_result = true}) == event);
}

TEST_CASE("wait validates as now does", "[S-WAIT-1][S-WAIT-6]") {
  const std::string bad_timeout = "ValidationError: timeout must be >= 0 or null";
  const auto unattached = make_event(Target{});
  REQUIRE(thrown_by([&] { unattached.wait({.timeout = -1s}); }) == bad_timeout);
  REQUIRE(thrown_by([&] { unattached.wait(); }) == "ValidationError: event has no bus attached");
  REQUIRE(thrown_by([&] { unattached.wait({.timeout = 1s}); }) == "ValidationError: event has no bus attached");
  REQUIRE(unattached.event_status() == EventStatus::pending);

  EventBus bus("WaitValidates");
  auto done = bus.emit(Target{}).wait();
  REQUIRE(thrown_by([&] { done.wait({.timeout = -1s}); }) == bad_timeout);
}

TEST_CASE("wait reports its timeout as now does and disturbs nothing", "[S-WAIT-1]") {
  Gate gate;
  std::atomic<bool> stopped = false;
  EventBus bus("WaitTimeout");
  bus.on<Target>([&](const Target&, std::stop_token stop) -> std::string {
    gate.wait();
    stopped = stop.stop_requested();
    return "done";
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Target{});
  std::string error;
  const double seconds = duration_of([&] { error = thrown_by([&] { event.wait({.timeout = 30ms}); }); });
  REQUIRE(error == "TimeoutError: Timed out waiting for Target completion after 0.03s");
  REQUIRE(seconds >= 0.03);
  REQUIRE(seconds < 3.0);
  REQUIRE(thrown_by([&] { event.wait({.timeout = 10ms, .first_result = true}); }) ==
          "TimeoutError: Timed out waiting for Target result after 0.01s");
  gate.open();
  REQUIRE(event.wait().event_result() == std::optional<std::string>("done"));
  REQUIRE_FALSE(stopped.load());
}

TEST_CASE("waiting leaves the queue alone", "[S-WAIT-1][S-WAIT-2][S-WAIT-6]") {
  Gate gate;
  Recorder log;
  EventBus bus("WaitPinnedB");
  bus.on<Blocker>([&](const Blocker&) {
    gate.wait();
    log.add("blocker_end");
  });
  bus.on<Child>([&](const Child& child) { log.add(child.name); });
  bus.on<Target>([&](const Target&) { log.add("target"); });
  bus.emit(Blocker{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto older = bus.emit(Child{"older"});
  auto target = bus.emit(Target{});
  Caller call([target] { target.wait({.timeout = 15s}); });
  OpenAtExit guard(gate);

  REQUIRE(call.still_blocked_after(40ms));
  REQUIRE(log.notes().empty());
  REQUIRE(target.event_status() == EventStatus::pending);
  const std::vector<Uuid> expected{older.event_id(), target.event_id()};
  REQUIRE(bus.pending_event_queue() == expected);
  gate.open();
  REQUIRE(call.finishes());
  REQUIRE(call.error().empty());
  REQUIRE(log.notes() == Names{"blocker_end", "older", "target"});
  REQUIRE_FALSE(target.event_blocks_parent_completion());
}

TEST_CASE("a parallel event is not held up by a blocker", "[S-WAIT-2][S-WAIT-6]") {
  Gate gate;
  Recorder log;
  EventBus bus("WaitPinnedC");
  bus.on<Blocker>([&](const Blocker&) {
    gate.wait();
    log.add("blocker_end");
  });
  bus.on<Target>([&](const Target&) { log.add("target"); });
  OpenAtExit guard(gate);
  auto blocker = bus.emit(Blocker{});
  REQUIRE(gate.wait_for_arrivals(1));

  auto target = bus.emit(Target{}, {.event_concurrency = EventConcurrency::parallel});
  REQUIRE(target.wait({.timeout = 15s}) == target);
  REQUIRE(log.notes() == Names{"target"});
  gate.open();
  blocker.wait();
  REQUIRE(log.notes() == Names{"target", "blocker_end"});
}

TEST_CASE("a serial handler that waits for its own queued children", "[S-WAIT-6]") {
  Recorder log;
  Event<Child> first;
  Event<Child> second;
  EventBus bus("WaitPinnedA");
  bus.on<Child>([&](const Child& child) { log.add(child.name); });
  bus.on<Blocker>([&](Event<Blocker> event) {
    log.add("parent_start");
    first = event.emit(Child{"x"});
    second = event.emit(Child{"y"});
    const auto found = bus.find<Child>({.where = [](const Event<Child>& child) { return child->name == "y"; }});
    if (thrown_by([&] { first.wait({.timeout = 20ms}); }).starts_with("TimeoutError")) log.add("x_timeout");
    if (found && thrown_by([&] { found->wait({.timeout = 20ms}); }).starts_with("TimeoutError")) log.add("y_timeout");
    log.add("parent_end");
  });

  bus.emit(Blocker{});
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"parent_start", "x_timeout", "y_timeout", "parent_end", "x", "y"});
  REQUIRE_FALSE(first.event_blocks_parent_completion());
  REQUIRE_FALSE(second.event_blocks_parent_completion());
}

TEST_CASE("inside a handler parallel events and other buses can be waited for", "[S-WAIT-4]") {
  Recorder log;
  EventBus other("WaitOtherBus");
  EventBus bus("WaitInside");
  other.on<Child>([&](const Child& child) { log.add("other " + child.name); });
  bus.on<Child>([&](const Child& child) { log.add(child.name); });
  bus.on<Blocker>([&](Event<Blocker> event) {
    event.emit(Child{"parallel child"}, {.event_concurrency = EventConcurrency::parallel}).wait({.timeout = 15s});
    log.add("between");
    other.emit(Child{"bus"}).wait({.timeout = 15s});
    log.add("parent_end");
  });
  bus.on<Target>([&](Event<Target> event) -> abxbus::task<std::string> {
    auto parallel = event.emit(Child{"from coroutine"}, {.event_concurrency = EventConcurrency::parallel});
    co_await parallel.wait_async();
    auto foreign = other.emit(Child{"for coroutine"});
    co_await foreign.wait_async();
    log.add("coroutine_end");
    co_return "done";
  });

  REQUIRE(statuses(bus.emit(Blocker{}).wait()) == Names{"completed"});
  REQUIRE(log.notes() == Names{"parallel child", "between", "other bus", "parent_end"});
  REQUIRE(bus.emit(Target{}).wait().event_result() == std::optional<std::string>("done"));
  REQUIRE(log.notes() == Names{"parallel child", "between", "other bus", "parent_end", "from coroutine",
                               "other for coroutine", "coroutine_end"});
}

TEST_CASE("a handler that waits too long is reported as slow", "[S-WAIT-5]") {
  CapturedLog log;
  std::atomic<bool> warned_meanwhile = false;
  EventBus bus("WaitSlow");
  bus.on<Child>([](const Child&) {});
  bus.on<Blocker>(
      [&](Event<Blocker> event) {
        auto child = event.emit(Child{"never in time"});
        const auto end = Clock::now() + patience;
        while (!warned_meanwhile && Clock::now() < end) {
          thrown_by([&] { child.wait({.timeout = 60ms}); });
          warned_meanwhile = log.count("Slow event handler") > 0;
        }
      },
      {.handler_name = "waiter", .handler_slow_timeout = 30ms});

  bus.emit(Blocker{}).wait();
  REQUIRE(warned_meanwhile.load());
  REQUIRE(log.count("Slow event handler") == 1);
  REQUIRE(log.count("waiter") >= 1);
}

TEST_CASE("waiting for the first result while the others go on", "[S-WAIT-6]") {
  Gate quick;
  Gate middle;
  Gate slow;
  std::atomic<bool> stopped = false;
  EventBus bus("WaitPinnedD", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  bus.on<Target>([&](const Target&) -> std::string {
    middle.wait();
    return "middle";
  });
  bus.on<Target>([&](const Target&) -> std::string {
    quick.wait();
    return "quick";
  });
  bus.on<Target>([&](const Target&, std::stop_token stop) -> std::string {
    slow.wait();
    stopped = stop.stop_requested();
    return "slow";
  });
  auto event = bus.emit(Target{});
  Caller call([event] { event.wait({.timeout = 15s, .first_result = true}); });
  OpenAtExit guard(quick, middle, slow);

  REQUIRE(slow.wait_for_arrivals(1));
  REQUIRE(quick.wait_for_arrivals(1));
  REQUIRE(middle.wait_for_arrivals(1));
  REQUIRE_FALSE(call.finished());
  quick.open();
  REQUIRE(call.finishes());
  REQUIRE(call.error().empty());
  REQUIRE(event.event_status() == EventStatus::started);
  REQUIRE(event.event_results()[1].result_as<std::string>() == std::optional<std::string>("quick"));
  REQUIRE(statuses(event) == Names{"started", "completed", "started"});
  middle.open();
  slow.open();
  event.wait();
  REQUIRE(statuses(event) == Names{"completed", "completed", "completed"});
  REQUIRE_FALSE(stopped.load());
}

TEST_CASE("wait never runs handlers on the caller's stack", "[S-WAIT-1]") {
  std::atomic<bool> here = false;
  const auto caller = std::this_thread::get_id();
  EventBus bus("WaitNotHere", {.event_timeout = 0s});
  bus.on<Target>([&, caller](const Target&) {
    if (std::this_thread::get_id() == caller) here = true;
  });
  for (int i = 0; i < 90; ++i) bus.emit(Target{}).wait();
  REQUIRE_FALSE(here.load());
}

// now() outside handlers: which events move, and which do not.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
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
struct Step {
  std::string name;
};

/// A default bus whose first event waits at a gate, with a log of everything that runs.
struct BusyBus {
  Gate gate;
  Recorder log;
  EventBus bus;
  OpenAtExit<Gate> guard{gate};

  explicit BusyBus(std::string_view name, EventBusOptions options = {}) : bus(name, std::move(options)) {
    bus.on<Blocker>([this](const Blocker&) {
      log.add("blocker_start");
      gate.wait();
      log.add("blocker_end");
    });
    bus.on<Target>([this](const Target&) -> std::string {
      log.add("target");
      return "value";
    });
    bus.on<Step>([this](const Step& step) { log.add(step.name); });
  }
  bool block() {
    bus.emit(Blocker{});
    return gate.wait_for_arrivals(1) && log.wait_for_size(1);
  }
};

}  // namespace

TEST_CASE("now runs the event beside a blocker", "[S-JMP-28][S-JMP-25]") {
  BusyBus busy("JmpPinned28");
  REQUIRE(busy.block());

  auto target = busy.bus.emit(Target{});
  REQUIRE(target.now({.timeout = 15s}) == target);
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target"});
  busy.gate.open();
  REQUIRE(busy.bus.wait_until_idle());
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target", "blocker_end"});
}

TEST_CASE("reading the result runs the event beside a blocker", "[S-JMP-27][S-JMP-28]") {
  BusyBus busy("JmpPinned28Result");
  REQUIRE(busy.block());

  auto target = busy.bus.emit(Target{});
  REQUIRE(target.event_result() == std::optional<std::string>("value"));
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target"});
  busy.gate.open();
  REQUIRE(busy.bus.wait_until_idle());
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target", "blocker_end"});
}

TEST_CASE("reading the list of results runs the event and all its handlers", "[S-JMP-27]") {
  BusyBus busy("JmpResultsList");
  busy.bus.on<Target>([&](const Target&) -> std::string {
    busy.log.add("target again");
    return "second";
  });
  REQUIRE(busy.block());

  auto target = busy.bus.emit(Target{});
  const std::vector<std::optional<std::string>> expected{"value", "second"};
  REQUIRE(target.event_results_list() == expected);
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target", "target again"});
}

TEST_CASE("an accessor that does not wait does not start the event", "[S-JMP-27]") {
  BusyBus busy("JmpNoWait");
  REQUIRE(busy.block());

  auto target = busy.bus.emit(Target{});
  REQUIRE(target.event_result({.wait = false}) == std::nullopt);
  REQUIRE(target.event_status() == EventStatus::pending);
  REQUIRE(busy.log.notes() == Names{"blocker_start"});
}

TEST_CASE("the single-value accessor returns before the slow handlers end", "[S-JMP-27]") {
  Gate slow;
  EventBus bus("JmpSingleValue", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  bus.on<Target>([&](const Target&) -> std::string {
    slow.wait();
    return "slow";
  });
  bus.on<Target>([](const Target&) -> std::string { return "quick"; });
  OpenAtExit guard(slow);

  auto event = bus.emit(Target{});
  REQUIRE(event.event_result() == std::optional<std::string>("quick"));
  REQUIRE_FALSE(completed(event));
  slow.open();
  event.wait();
}

TEST_CASE("now jumps over older events and leaves their order alone", "[S-JMP-25][S-JMP-8]") {
  BusyBus busy("JmpOverOlder");
  REQUIRE(busy.block());
  for (const char* name : {"one", "two", "three"}) busy.bus.emit(Step{name});
  auto target = busy.bus.emit(Target{});
  busy.bus.emit(Step{"four"});

  target.now();
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target"});
  REQUIRE(busy.bus.pending_event_queue().size() == 4);
  busy.gate.open();
  REQUIRE(busy.bus.wait_until_idle());
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target", "blocker_end", "one", "two", "three", "four"});
}

TEST_CASE("now jumps on a busy global-serial bus too", "[S-JMP-25]") {
  BusyBus busy("JmpGlobal", {.event_concurrency = EventConcurrency::global_serial, .domain = Domain()});
  REQUIRE(busy.block());
  busy.bus.emit(Step{"queued"});
  auto target = busy.bus.emit(Target{});

  target.now();
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target"});
  busy.gate.open();
  REQUIRE(busy.bus.wait_until_idle());
  REQUIRE(busy.log.notes() == Names{"blocker_start", "target", "blocker_end", "queued"});
}

TEST_CASE("on a free bus the awaited event holds the lock", "[S-JMP-26]") {
  Gate gate;
  Recorder log;
  EventBus bus("JmpFreeBus");
  bus.on<Target>([&](const Target&) -> std::string {
    log.add("target_start");
    gate.wait();
    log.add("target_end");
    return "value";
  });
  bus.on<Step>([&](const Step& step) { log.add(step.name); });
  auto target = bus.emit(Target{});
  Caller call([target] { target.now(); });
  OpenAtExit guard(gate);

  REQUIRE(gate.wait_for_arrivals(1));
  auto step = bus.emit(Step{"step"});
  REQUIRE(call.still_blocked_after(40ms));
  REQUIRE(step.event_status() == EventStatus::pending);
  gate.open();
  REQUIRE(call.finishes());
  step.wait();
  REQUIRE(log.notes() == Names{"target_start", "target_end", "step"});
}

TEST_CASE("emit and now in turn on a free bus: normal processing, once each", "[S-JMP-26][S-JMP-7]") {
  constexpr int events = 300;
  int calls = 0;  // plain: serial runs are ordered among themselves and before now() returns
  Meeting inside;
  EventBus bus("JmpEmitNow", {.max_history_size = std::nullopt});
  bus.on<Target>([&](const Target&) -> std::string {
    inside.enter();
    ++calls;
    inside.leave();
    return "value";
  });
  for (int i = 0; i < events; ++i) {
    auto event = bus.emit(Target{}).now();
    REQUIRE(calls == i + 1);
    REQUIRE(event.event_results().size() == 1);
  }
  REQUIRE(inside.max() == 1);
}

TEST_CASE("awaiting a completed event again does not move what is queued", "[S-JMP-38]") {
  BusyBus busy("JmpAgain");
  auto target = busy.bus.emit(Target{}).now();
  REQUIRE(busy.log.notes() == Names{"target"});
  busy.bus.emit(Blocker{});
  REQUIRE(busy.gate.wait_for_arrivals(1));
  auto one = busy.bus.emit(Step{"one"});
  auto two = busy.bus.emit(Step{"two"});

  REQUIRE(target.now() == target);
  const std::vector<Uuid> expected{one.event_id(), two.event_id()};
  REQUIRE(busy.bus.pending_event_queue() == expected);
  REQUIRE(one.event_status() == EventStatus::pending);
  busy.gate.open();
  REQUIRE(busy.bus.wait_until_idle());
  REQUIRE(busy.log.notes() == Names{"target", "blocker_start", "blocker_end", "one", "two"});
}

TEST_CASE("now on an event that two buses accepted runs it once on each", "[S-JMP-7]") {
  std::atomic<int> first_calls = 0;
  std::atomic<int> second_calls = 0;
  std::atomic<Gate*> accepted = nullptr;  // by both: a bus does not run what is over elsewhere (S-EMIT-12)
  EventBus first("JmpTwiceFirst");
  EventBus second("JmpTwiceSecond");
  first.on<Step>([&](const Step&) {
    accepted.load()->wait();
    ++first_calls;
  });
  second.on<Step>([&](const Step&) { ++second_calls; });

  for (int round = 1; round <= 30; ++round) {
    Gate gate;
    accepted = &gate;
    auto event = first.emit(Step{"both"});
    second.emit(event);
    gate.open();
    event.now();
    REQUIRE(first_calls == round);
    REQUIRE(second_calls == round);
    REQUIRE(event.event_results().size() == 2);
  }
}

// Idle: what counts as work, and waiting for its end.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {};
struct Next {
  int left = 0;
};
struct Fill {
  std::size_t cell = 0;
};

}  // namespace

TEST_CASE("a new bus is idle", "[S-IDLE-2][S-IDLE-3][S-IDLE-4]") {
  EventBus bus("IdleNew");
  REQUIRE(bus.is_idle_and_queue_empty());
  REQUIRE(bus.is_idle());
  REQUIRE(bus.wait_until_idle());
  REQUIRE(bus.wait_until_idle(1s));
}

TEST_CASE("not idle from acceptance to the end of the run", "[S-IDLE-2][S-IDLE-3]") {
  Gate gate;
  EventBus bus("IdleSpan");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);

  auto running = bus.emit(Work{});
  REQUIRE_FALSE(bus.is_idle_and_queue_empty());
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE_FALSE(bus.is_idle_and_queue_empty());
  REQUIRE_FALSE(bus.is_idle());
  gate.open();
  running.wait();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(bus.is_idle_and_queue_empty());
  REQUIRE(bus.is_idle());
}

TEST_CASE("queued events count for idle-and-empty and not for is_idle", "[S-IDLE-1][S-IDLE-3]") {
  Gate gate;
  const EventBusOptions options{.event_concurrency = EventConcurrency::global_serial, .domain = Domain()};
  EventBus blocking("IdleGlobalBlocker", options);
  EventBus bus("IdleQueued", options);
  blocking.on<Work>([&](const Work&) { gate.wait(); });
  bus.on<Work>([](const Work&) {});
  OpenAtExit guard(gate);

  blocking.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto queued = bus.emit(Work{});
  REQUIRE_FALSE(bus.is_idle_and_queue_empty());
  REQUIRE(bus.is_idle());
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(completed(queued));
}

TEST_CASE("an active parallel run counts", "[S-IDLE-1]") {
  Gate gate;
  EventBus bus("IdleParallel", {.event_concurrency = EventConcurrency::parallel});
  bus.on<Work>([&](const Work&) { gate.wait(); });
  bus.on<Next>([](const Next&) {});
  OpenAtExit guard(gate);

  bus.emit(Work{});
  bus.emit(Next{}).wait();
  REQUIRE_FALSE(bus.is_idle_and_queue_empty());
  REQUIRE_FALSE(bus.wait_until_idle(20ms));
  gate.open();
  REQUIRE(bus.wait_until_idle());
}

TEST_CASE("the same event's work on another bus does not count", "[S-IDLE-1]") {
  Gate gate;
  EventBus bus("IdleOwnWork");
  EventBus other("IdleOtherWork");
  bus.on<Work>([](const Work&) {});
  other.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);

  auto event = other.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.emit(event);
  REQUIRE(bus.wait_until_idle(15s));
  REQUIRE_FALSE(completed(event));
  REQUIRE_FALSE(other.is_idle_and_queue_empty());
  gate.open();
  event.wait();
}

TEST_CASE("an abandoned handler does not count", "[S-IDLE-1]") {
  Gate gate;
  std::atomic<bool> ended = false;
  EventBus bus("IdleAbandoned");
  bus.on<Work>(
      [&](const Work&) {
        gate.wait();
        ended = true;
      },
      {.handler_timeout = 20ms});
  OpenAtExit guard(gate);

  bus.emit(Work{});
  REQUIRE(bus.wait_until_idle(15s));
  REQUIRE(bus.is_idle_and_queue_empty());
  REQUIRE_FALSE(ended.load());
}

TEST_CASE("waiting for idle with a limit", "[S-IDLE-4][S-IDLE-9]") {
  Gate gate;
  EventBus bus("IdlePinnedA");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));

  const CapturedLog log;
  bool idle = true;
  const double seconds = duration_of([&] { idle = bus.wait_until_idle(50ms); });
  REQUIRE_FALSE(idle);
  REQUIRE(seconds >= 0.03);
  REQUIRE(seconds < 3.0);
  REQUIRE(log.lines().size() == 1);
  REQUIRE_FALSE(bus.is_idle_and_queue_empty());
  REQUIRE(statuses(event) == Names{"started"});
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(statuses(event) == Names{"completed"});
  REQUIRE(log.lines().size() == 1);
}

TEST_CASE("none, zero and negative limits wait for the work", "[S-IDLE-4][S-IDLE-9]") {
  std::atomic<int> done = 0;
  EventBus bus("IdlePinnedB");
  bus.on<Work>([&](const Work&) {
    std::this_thread::sleep_for(20ms);
    ++done;
  });
  bus.emit(Work{});
  REQUIRE(bus.wait_until_idle(0s));
  REQUIRE(done == 1);
  bus.emit(Work{});
  REQUIRE(bus.wait_until_idle(-1s));
  REQUIRE(done == 2);
  bus.emit(Work{});
  REQUIRE(bus.wait_until_idle(std::nullopt));
  REQUIRE(done == 3);
}

TEST_CASE("a child that nobody awaits is waited for", "[S-IDLE-1][S-IDLE-9]") {
  std::atomic<bool> child_done = false;
  EventBus bus("IdlePinnedC");
  bus.on<Next>([&](const Next&) {
    std::this_thread::sleep_for(30ms);
    child_done = true;
  });
  bus.on<Work>([](Event<Work> event) { event.emit(Next{}); });
  bus.emit(Work{});
  REQUIRE(bus.wait_until_idle());
  REQUIRE(child_done.load());
}

TEST_CASE("never idle between a handler and its follow-up event", "[S-IDLE-5]") {
  constexpr int chain = 150;
  for (const EventConcurrency mode : {EventConcurrency::bus_serial, EventConcurrency::parallel}) {
    std::atomic<int> handled = 0;
    std::atomic<bool> false_idle = false;
    std::atomic<bool> watching = true;
    EventBus bus(mode == EventConcurrency::parallel ? "IdleChainParallel" : "IdleChainSerial",
                 {.event_concurrency = mode, .max_history_size = std::nullopt});
    bus.on<Next>([&](Event<Next> event) {
      ++handled;
      if (event->left > 0) event.event_bus().emit(Next{event->left - 1});
    });
    bus.emit(Next{chain});
    std::jthread watcher([&] {
      while (watching) {
        if (bus.is_idle_and_queue_empty() && handled != chain + 1) false_idle = true;
        std::this_thread::yield();
      }
    });
    const bool idle = bus.wait_until_idle();
    const int seen = handled;
    watching = false;
    watcher.join();
    REQUIRE(idle);
    REQUIRE(seen == chain + 1);
    REQUIRE_FALSE(false_idle.load());
  }
}

TEST_CASE("an emit that has returned is visible to idle", "[S-IDLE-5][S-IDLE-2]") {
  for (int round = 0; round < 100; ++round) {
    Gate gate;
    EventBus bus("IdleVisible");
    bus.on<Work>([&](const Work&) { gate.wait(); });
    bus.emit(Work{});
    const bool idle = bus.is_idle_and_queue_empty();
    gate.open();
    REQUIRE_FALSE(idle);
    REQUIRE(bus.wait_until_idle());
  }
}

TEST_CASE("what the caller emitted before has finished, with its effects", "[S-IDLE-6]") {
  constexpr std::size_t threads = 3;
  constexpr int rounds = 40;
  std::array<int, threads> cells{};  // plain: the handlers' effects are visible to the waiter
  std::atomic<int> unfinished = 0;
  EventBus bus("IdleOwnEvents", {.max_history_size = std::nullopt});
  bus.on<Fill>([&](const Fill& fill) { ++cells[fill.cell]; });
  {
    std::vector<std::unique_ptr<Caller>> callers;
    for (std::size_t i = 0; i < threads; ++i)
      callers.push_back(std::make_unique<Caller>([&, i] {
        for (int round = 1; round <= rounds; ++round) {
          auto event = bus.emit(Fill{i});
          if (!bus.wait_until_idle() || cells[i] != round || !completed(event)) ++unfinished;
        }
      }));
  }
  REQUIRE(unfinished == 0);
}

TEST_CASE("a handler cannot wait for its own bus", "[S-IDLE-7]") {
  std::atomic<int> verdict = -1;
  const CapturedLog log;
  EventBus bus("IdleInside");
  bus.on<Work>([&](const Work&) { verdict = bus.wait_until_idle(30ms) ? 1 : 0; });
  bus.emit(Work{}).wait();
  REQUIRE(verdict == 0);
  REQUIRE(bus.wait_until_idle());
}

TEST_CASE("an abandoned handler is released from waiting for its own bus", "[S-IDLE-7]") {
  Recorder log;
  EventBus bus("IdleInsideAbandoned");
  bus.on<Work>([&](const Work&) { log.add(thrown_by([&] { bus.wait_until_idle(); }).substr(0, 18)); },
               {.handler_timeout = 30ms});
  auto event = bus.emit(Work{}).wait();
  REQUIRE(log.wait_for_size(1));
  REQUIRE(log.notes() == Names{"OperationCancelled"});
  REQUIRE(event.event_results()[0].error_type() == "EventHandlerTimeoutError");
}

TEST_CASE("one idle transition releases every waiter", "[S-IDLE-8]") {
  constexpr int waiters = 8;
  Gate gate;
  std::atomic<int> released = 0;
  EventBus bus("IdleMany");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  bus.emit(Work{});
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < waiters; ++i)
    callers.push_back(std::make_unique<Caller>([&] {
      if (bus.wait_until_idle()) ++released;
    }));
  OpenAtExit guard(gate);

  REQUIRE(callers.front()->still_blocked_after(30ms));
  REQUIRE(released == 0);
  gate.open();
  for (auto& caller : callers) REQUIRE(caller->finishes());
  REQUIRE(released == waiters);
}

TEST_CASE("no wake-up is lost between the check and the wait", "[S-IDLE-8]") {
  int idle = 0;
  EventBus bus("IdleNoLoss", {.max_history_size = std::nullopt});
  bus.on<Work>([](const Work&) {});
  for (int i = 0; i < 1000; ++i) {
    bus.emit(Work{});
    if (bus.wait_until_idle(15s)) ++idle;
  }
  REQUIRE(idle == 1000);
}

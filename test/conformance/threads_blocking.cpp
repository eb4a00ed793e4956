// Blocked handlers starve nobody; waits are driven by events and end on time.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {};
struct Other {};

EventBusOptions all_parallel() {
  return {.event_concurrency = EventConcurrency::parallel,
          .event_handler_concurrency = EventHandlerConcurrency::parallel,
          .max_history_size = std::nullopt};
}

/// Threads of this process, 0 where the system does not tell.
int thread_count() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  return 0;
}

/// Processor time that the calling thread has used, in seconds.
double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

TEST_CASE("300 sleeping handlers of one event run side by side, another bus works on", "[S-MT-6][S-MT-15]") {
  constexpr int handlers = 300;
  std::atomic<int> ended = 0;
  std::atomic<int> ended_meanwhile = handlers;
  EventBus bus("MtSleepers", all_parallel());
  EventBus other("MtSleepersOther");
  for (int i = 0; i < handlers; ++i)
    bus.on<Work>([&](const Work&) {
      std::this_thread::sleep_for(100ms);
      ++ended;
    });
  other.on<Other>([&](const Other&) { ended_meanwhile = ended.load(); });

  const double seconds = duration_of([&] {
    auto event = bus.emit(Work{});
    other.emit(Other{}).wait();
    event.wait();
  });
  REQUIRE(ended == handlers);
  REQUIRE(ended_meanwhile < handlers);
  REQUIRE(seconds >= 0.1);
  REQUIRE(seconds < 3.0);
}

TEST_CASE("several hundred blocked handlers, and still the next one starts", "[S-MT-6]") {
  constexpr int blocked = 300;
  Gate gate;
  EventBus bus("MtBlocked", all_parallel());
  EventBus other("MtBlockedOther");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  other.on<Other>([](const Other&) {});
  OpenAtExit guard(gate);
  for (int i = 0; i < blocked; ++i) bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(blocked));
  REQUIRE(completed(other.emit(Other{}).wait({.timeout = 15s})));
  gate.open();
  REQUIRE(bus.wait_until_idle());
}

TEST_CASE("handlers blocked inside the library starve nobody", "[S-MT-6]") {
  constexpr int blocked = 200;
  Gate gate;
  std::atomic<int> inside = 0;
  EventBus source("MtLibrarySource");
  EventBus bus("MtLibraryBlocked", all_parallel());
  EventBus other("MtLibraryOther");
  source.on<Other>([&](const Other&) { gate.wait(); });
  other.on<Other>([](const Other&) {});
  OpenAtExit guard(gate);
  auto slow = source.emit(Other{});
  for (int i = 0; i < 4; ++i)
    bus.on<Work>([&, slow, i](const Work&) {
      ++inside;
      if (i == 0) slow.now();
      if (i == 1) slow.wait();
      if (i == 2) source.wait_until_idle();
      if (i == 3) slow.event_results_list<int>();
    });
  for (int i = 0; i < blocked / 4; ++i) bus.emit(Work{});
  REQUIRE(eventually([&] { return inside == blocked; }));
  REQUIRE(completed(other.emit(Other{}).wait({.timeout = 15s})));
  gate.open();
  REQUIRE(bus.wait_until_idle());
}

TEST_CASE("as many handlers as workers wait for children at once", "[S-MT-6]") {
  const Executor executor({.workers = 2});
  EventBusOptions options = all_parallel();
  options.executor = executor;
  std::atomic<int> children = 0;
  Gate all_inside;
  EventBus bus("MtFewWorkers", options);
  bus.on<Other>([&](const Other&) { ++children; });
  for (int i = 0; i < 4; ++i)
    bus.on<Work>([&](Event<Work> event) {
      all_inside.wait();
      event.emit(Other{}).now({.timeout = 15s});
    });
  OpenAtExit guard(all_inside);
  auto event = bus.emit(Work{});
  REQUIRE(all_inside.wait_for_arrivals(4));
  all_inside.open();
  event.wait();
  REQUIRE(children == 4);
  REQUIRE(statuses(event) == Names{"completed", "completed", "completed", "completed"});
}

TEST_CASE("suspended coroutine handlers hold no worker", "[S-MT-6]") {
  constexpr int suspended = 500;
  Gate gate;
  std::atomic<int> inside = 0;
  std::atomic<int> resumed = 0;
  EventBus source("MtSuspendSource");
  EventBus bus("MtSuspended", all_parallel());
  source.on<Other>([&](const Other&) { gate.wait(); });
  OpenAtExit guard(gate);
  auto slow = source.emit(Other{});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.on<Work>([&, slow](const Work&) -> abxbus::task<> {
    ++inside;
    co_await slow.wait_async();
    ++resumed;
  });
  bus.on<Work>([](const Work&) { return 1; });
  const int before = thread_count();
  for (int i = 0; i < suspended; ++i) bus.emit(Work{});
  REQUIRE(eventually([&] { return inside == suspended; }));
  REQUIRE(thread_count() <= before + 64);
  REQUIRE(resumed == 0);
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(resumed == suspended);
}

TEST_CASE("waiting costs no processor time", "[S-MT-10]") {
  Gate gate;
  std::atomic<double> used[3] = {1.0, 1.0, 1.0};
  EventBus bus("MtNoSpin");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  auto event = bus.emit(Work{});
  const auto measured = [](std::atomic<double>& result, auto call) {
    const double before = processor_seconds();
    call();
    result = processor_seconds() - before;
  };
  Caller now([&] { measured(used[0], [&] { event.now(); }); });
  Caller wait([&] { measured(used[1], [&] { event.wait({.timeout = 30s}); }); });
  Caller idle([&] { measured(used[2], [&] { bus.wait_until_idle(); }); });
  OpenAtExit guard(gate);
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(now.still_blocked_after(400ms));
  gate.open();
  for (Caller* call : {&now, &wait, &idle}) REQUIRE(call->finishes());
  for (const auto& seconds : used) REQUIRE(seconds.load() < 0.1);
}

TEST_CASE("a finished event wakes every waiter of every kind", "[S-MT-10]") {
  Gate gate;
  EventBus bus("MtWakesAll", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  bus.on<Work>([&](const Work&) {
    gate.wait();
    return 1;
  });
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto now_future = event.now_async();
  const auto wait_future = event.wait_async();
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(std::make_unique<Caller>([event] { event.now(); }));
    callers.push_back(std::make_unique<Caller>([event] { event.wait({.timeout = 30s}); }));
    callers.push_back(std::make_unique<Caller>([event] { event.wait({.first_result = true}); }));
    callers.push_back(std::make_unique<Caller>([event] { event.event_results_list<int>(); }));
    callers.push_back(std::make_unique<Caller>([event] { event.event_results()[0].wait(); }));
    callers.push_back(std::make_unique<Caller>([&bus] { bus.wait_until_idle(); }));
  }
  OpenAtExit guard(gate);
  REQUIRE(callers.front()->still_blocked_after(30ms));
  REQUIRE_FALSE(now_future.ready());
  gate.open();
  for (auto& caller : callers) {
    REQUIRE(caller->finishes());
    REQUIRE(caller->error().empty());
  }
  REQUIRE(now_future.wait_for(15s));
  REQUIRE(wait_future.wait_for(15s));
}

TEST_CASE("no wake-up is missed", "[S-MT-10]") {
  int woken = 0;
  EventBus bus("MtNoMiss", {.max_history_size = std::nullopt});
  bus.on<Work>([](const Work&) { return 1; });
  for (int i = 0; i < 1500; ++i) {
    auto event = bus.emit(Work{});
    const WaitOptions limit{.timeout = 15s};
    if (i % 3 == 0) event.wait(limit);
    if (i % 3 == 1) event.now(limit);
    if (i % 3 == 2) event.wait_async().get();
    if (completed(event)) ++woken;
  }
  REQUIRE(woken == 1500);
}

TEST_CASE("a blocked handler delays no other bus, no timeout, no warning, no waiter", "[S-MT-15]") {
  Gate gate;
  const CapturedLog log;
  EventBusOptions options;
  options.executor = Executor({.workers = 2});
  EventBus blocked("MtDelayBlocked", options);
  EventBus other("MtDelayOther", options);
  blocked.on<Work>([&](const Work&) { gate.wait(); });
  blocked.on("*", [](BaseEvent) {});
  other.on<Work>([](const Work&) {});
  other.on<Other>([&](const Other&) { gate.wait(); },
                  {.handler_name = "sluggish", .handler_timeout = 120ms, .handler_slow_timeout = 40ms});
  OpenAtExit guard(gate);
  auto stuck = blocked.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));

  REQUIRE(duration_of([&] { other.emit(Work{}).wait(); }) < 3.0);
  auto timed = other.emit(Other{});
  REQUIRE(duration_of([&] { timed.wait(); }) < 3.0);
  REQUIRE(timed.event_results()[0].error_type() == "EventHandlerTimeoutError");
  REQUIRE(log.wait_for("Slow event handler", 3s));
  REQUIRE(duration_of([&] { thrown_by([&] { stuck.wait({.timeout = 30ms}); }); }) < 3.0);
  REQUIRE_FALSE(completed(stuck));
}

TEST_CASE("a waiter's timeout is not early and soon, whatever the pool does", "[S-MT-16]") {
  Gate gate;
  std::atomic<bool> busy = true;
  EventBusOptions options = all_parallel();
  options.executor = Executor({.workers = 2});
  EventBus load("MtTimeoutLoad", options);
  EventBus bus("MtTimeout", options);
  load.on<Work>([&](const Work&) {
    const auto end = Clock::now() + patience;
    while (busy && Clock::now() < end) std::this_thread::yield();
  });
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);
  for (int i = 0; i < 4; ++i) load.emit(Work{});
  auto event = bus.emit(Work{});

  std::vector<double> measured;
  for (const auto timeout : {10ms, 50ms, 100ms}) {
    measured.push_back(duration_of([&] { thrown_by([&] { event.wait({.timeout = timeout}); }); }));
    measured.push_back(duration_of([&] { thrown_by([&] { event.now({.timeout = timeout}); }); }));
    measured.push_back(duration_of([&] { bus.wait_until_idle(timeout); }));
  }
  busy = false;
  const std::vector<double> expected{0.01, 0.01, 0.01, 0.05, 0.05, 0.05, 0.1, 0.1, 0.1};
  for (std::size_t i = 0; i < measured.size(); ++i) {
    REQUIRE(measured[i] >= expected[i]);
    REQUIRE(measured[i] < expected[i] + 2.0);
  }
}

TEST_CASE("a handler's timeout is not early and soon, whatever the pool does", "[S-MT-16]") {
  Gate gate;
  EventBusOptions options = all_parallel();
  options.executor = Executor({.workers = 2});
  EventBus bus("MtHandlerTimeout", options);
  for (const auto timeout : {20ms, 80ms, 150ms})
    bus.on<Work>([&](const Work&) { gate.wait(); }, {.handler_timeout = timeout});
  OpenAtExit guard(gate);

  const auto start = Clock::now();
  auto event = bus.emit(Work{}).wait();
  const double seconds = seconds_since(start);
  REQUIRE(seconds >= 0.15);
  REQUIRE(seconds < 3.0);
  const std::vector<double> expected{0.02, 0.08, 0.15};
  const EventResults results = event.event_results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i].error_type() == "EventHandlerTimeoutError");
    const std::chrono::duration<double> span = results[i].completed_at()->time() - results[i].started_at()->time();
    REQUIRE(span.count() >= expected[i] - 0.002);
    REQUIRE(span.count() < expected[i] + 2.0);
  }
}

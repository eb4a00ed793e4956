// destroy(): what becomes of queued events, of runs in progress, and of those who wait for them.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Blocker {};
struct Work {};

}  // namespace

TEST_CASE("queued events are dropped", "[S-DST-7]") {
  Gate gate;
  std::atomic<int> calls = 0;
  EventBus bus("DstQueued");
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  bus.on<Work>([&](const Work&) { ++calls; });
  OpenAtExit guard(gate);
  bus.emit(Blocker{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto one = bus.emit(Work{});
  auto two = bus.emit(Work{});
  REQUIRE(one.event_pending_bus_count() == 1);

  bus.destroy();
  gate.open();
  for (const auto& event : {one, two}) {
    REQUIRE(event.event_status() == EventStatus::pending);
    REQUIRE(event.event_pending_bus_count() == 0);
    REQUIRE(event.event_results().empty());
    REQUIRE(thrown_by([&] { event.now(); }).starts_with("EventBusDestroyedError"));
    REQUIRE(thrown_by([&] { event.wait({.timeout = 1s}); }).starts_with("EventBusDestroyedError"));
    REQUIRE(thrown_by([&] { event.event_result<int>(); }).starts_with("EventBusDestroyedError"));
  }
  REQUIRE(calls == 0);
}

TEST_CASE("whoever waits for a dropped event is released with the error", "[S-DST-7]") {
  Gate gate;
  EventBus bus("DstWaiters");
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  bus.on<Work>([](const Work&) {});
  bus.emit(Blocker{});
  auto event = bus.emit(Work{});
  auto future = event.wait_async();
  const auto wait = [event] { event.wait(); };
  Caller unlimited(wait);
  Caller limited([event] { event.wait({.timeout = 60s}); });
  Caller first([event] { event.wait({.first_result = true}); });
  OpenAtExit guard(gate);
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(unlimited.still_blocked_after(30ms));

  bus.destroy();
  const std::string expected = bus.label() + " has been destroyed and cannot be used again";
  for (Caller* call : {&unlimited, &limited, &first}) {
    REQUIRE(call->finishes());
    REQUIRE(call->error() == "EventBusDestroyedError");
    REQUIRE(call->message() == expected);
  }
  REQUIRE_THROWS_AS(future.get(), EventBusDestroyedError);
}

TEST_CASE("an event that another bus accepted continues there", "[S-DST-7]") {
  Gate gate;
  Gate other_gate;
  std::atomic<int> calls = 0;
  EventBus bus("DstShared");
  EventBus other("DstSharedOther");
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  bus.on<Work>([&](const Work&) { ++calls; });
  other.on<Work>([&](const Work&) {
    other_gate.wait();
    return 1;
  });
  bus.emit(Blocker{});
  auto event = bus.emit(Work{});
  other.emit(event);
  Caller call([event] { event.wait(); });
  OpenAtExit guard(gate, other_gate);
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(other_gate.wait_for_arrivals(1));

  bus.destroy();
  REQUIRE(call.still_blocked_after(30ms));
  REQUIRE(event.event_pending_bus_count() == 1);
  other_gate.open();
  REQUIRE(call.finishes());
  REQUIRE(call.error().empty());
  REQUIRE(completed(event));
  REQUIRE(statuses(event) == Names{"completed"});
  REQUIRE(calls == 0);
}

TEST_CASE("an event whose other buses have all finished completes at the drop", "[S-DST-7]") {
  Gate gate;
  EventBus bus("DstLast");
  EventBus other("DstLastOther");
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  other.on<Work>([](const Work&) { return 1; });
  OpenAtExit guard(gate);
  bus.emit(Blocker{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto event = bus.emit(Work{});
  other.emit(event);
  REQUIRE(other.wait_until_idle());
  REQUIRE_FALSE(completed(event));

  bus.destroy();
  REQUIRE(completed(event));
  REQUIRE(event.now({.timeout = 15s}) == event);
  REQUIRE(statuses(event) == Names{"completed"});
}

TEST_CASE("a run in progress is settled at once", "[S-DST-8][S-DST-9]") {
  Gate gate;
  std::atomic<bool> stopped = false;
  std::atomic<bool> returned = false;
  std::atomic<int> never = 0;
  EventBus bus("DstSettles");
  bus.on<Work>([](const Work&) { return 1; });
  bus.on<Work>([&](const Work&, std::stop_token stop) {
    gate.wait();
    stopped = wait_for_stop(stop);
    returned = true;
    return 2;
  });
  bus.on<Work>([&](const Work&) { ++never; });
  auto event = bus.emit(Work{});
  Caller call([event] { event.wait(); });
  OpenAtExit guard(gate);
  REQUIRE(gate.wait_for_arrivals(1));

  bus.destroy();
  REQUIRE(completed(event));
  REQUIRE(event.event_pending_bus_count() == 0);
  REQUIRE(statuses(event) == Names{"completed", "error", "error"});
  const EventResults results = event.event_results();
  REQUIRE(results[0].result_as<int>() == std::optional<int>(1));
  REQUIRE(results[1].error_type() == "EventHandlerAbortedError");
  REQUIRE(results[1].error_message() == "Aborted running handler due to event bus destroy");
  REQUIRE(results[2].error_type() == "EventHandlerCancelledError");
  REQUIRE(results[2].error_message() == "Cancelled pending handler due to event bus destroy");
  REQUIRE(call.finishes());
  REQUIRE(call.error().empty());
  REQUIRE_FALSE(returned.load());

  gate.open();
  REQUIRE(eventually([&] { return returned.load(); }));
  REQUIRE(stopped.load());
  std::this_thread::sleep_for(5ms);
  REQUIRE(never == 0);
  REQUIRE(statuses(event) == Names{"completed", "error", "error"});
}

TEST_CASE("every running handler of parallel runs is settled", "[S-DST-8]") {
  constexpr int events = 5;
  Gate gate;
  std::vector<Event<Work>> emitted;
  EventBus bus("DstSettlesParallel", {.event_concurrency = EventConcurrency::parallel,
                                      .event_handler_concurrency = EventHandlerConcurrency::parallel});
  for (int i = 0; i < 2; ++i) bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);
  for (int i = 0; i < events; ++i) emitted.push_back(bus.emit(Work{}));
  REQUIRE(gate.wait_for_arrivals(2 * events));

  bus.destroy();
  for (const auto& event : emitted) {
    REQUIRE(completed(event));
    for (const EventResult& result : event.event_results())
      REQUIRE(result.error_message() == "Aborted running handler due to event bus destroy");
  }
}

TEST_CASE("a run settled by destroy completes the event only when no other bus holds it", "[S-DST-8]") {
  Gate gate;
  Gate other_gate;
  EventBus bus("DstHeld");
  EventBus other("DstHeldOther");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  other.on<Work>([&](const Work&) {
    other_gate.wait();
    return 1;
  });
  OpenAtExit guard(gate, other_gate);
  auto event = bus.emit(Work{});
  other.emit(event);
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(other_gate.wait_for_arrivals(1));

  bus.destroy();
  REQUIRE_FALSE(completed(event));
  REQUIRE(eventually([&] { return statuses(event) == Names{"error", "started"}; }));
  other_gate.open();
  event.wait();
  REQUIRE(statuses(event) == Names{"error", "completed"});
}

TEST_CASE("a suspended coroutine is settled like a plain handler", "[S-DST-8]") {
  Gate gate;
  Recorder log;
  EventBus source("DstCoroutineSource");
  EventBus bus("DstCoroutine");
  source.on<Blocker>([&](const Blocker&) { gate.wait(); });
  OpenAtExit guard(gate);
  auto never = source.emit(Blocker{});
  bus.on<Work>([&, never](const Work&) -> abxbus::task<> {
    log.add("suspends");
    co_await never.wait_async();
  });
  auto event = bus.emit(Work{});
  REQUIRE(log.wait_for_size(1));

  bus.destroy();
  REQUIRE(completed(event));
  REQUIRE(event.event_results()[0].error_type() == "EventHandlerAbortedError");
  gate.open();
  never.wait();
}

TEST_CASE("destroy against emit: accepted or refused, nothing between", "[S-DST-12]") {
  for (int round = 0; round < 15; ++round) {
    constexpr int threads = 3;
    std::atomic<int> unclear = 0;
    std::atomic<int> accepted_by_all = 0;
    std::optional<EventBus> bus(std::in_place, "DstRace", EventBusOptions{.max_history_size = std::nullopt});
    bus->on<Work>([](const Work&) {});
    std::vector<std::unique_ptr<Caller>> emitters;
    for (int i = 0; i < threads; ++i)
      emitters.push_back(std::make_unique<Caller>([&, ref = EventBusRef(*bus)] {
        const std::vector<std::string> path{ref.label()};
        for (bool going = true; going;) {
          const auto event = make_event(Work{});
          try {
            ref.emit(event);
            ++accepted_by_all;
            if (event.event_path() != path) ++unclear;
            const std::string outcome = thrown_by([&] { event.wait({.timeout = 30s}); });
            if (!outcome.empty() && !outcome.starts_with("EventBusDestroyedError")) ++unclear;
            if (outcome.empty() && !completed(event)) ++unclear;
          } catch (const EventBusDestroyedError&) {
            going = false;
            if (!event.event_path().empty() || event.event_status() != EventStatus::pending) ++unclear;
            if (thrown_by([&] { event.wait(); }) != "ValidationError: event has no bus attached") ++unclear;
          }
          if (event.event_pending_bus_count() != 0 && !eventually([&] { return event.event_pending_bus_count() == 0; }))
            ++unclear;
        }
      }));
    eventually([&] { return accepted_by_all > 10; });
    bus->destroy();
    for (auto& emitter : emitters) REQUIRE(emitter->finishes());
    REQUIRE(unclear == 0);
    REQUIRE(accepted_by_all > 0);
  }
}

TEST_CASE("two destroys at once", "[S-DST-12][S-DST-3]") {
  for (int round = 0; round < 20; ++round) {
    EventBus bus("DstTwice");
    bus.on<Work>([](const Work&) {});
    for (int i = 0; i < 20; ++i) bus.emit(Work{});
    {
      Caller one([&] { bus.destroy(false); });
      Caller two([&] { bus.destroy(true); });
    }
    REQUIRE(bus.is_destroyed());
    REQUIRE(bus.handlers().empty());
    REQUIRE(bus.event_history().size() == 0);
  }
}

TEST_CASE("the global lock goes on when its holder is destroyed", "[S-DST-14]") {
  Gate gate;
  const EventBusOptions options{.event_concurrency = EventConcurrency::global_serial, .domain = Domain()};
  EventBus holder("DstGlobalHolder", options);
  EventBus waiting("DstGlobalWaiting", options);
  EventBus last("DstGlobalLast", options);
  holder.on<Work>([&](const Work&) { gate.wait(); });
  waiting.on<Work>([](const Work&) { return 1; });
  last.on<Work>([](const Work&) { return 2; });
  OpenAtExit guard(gate);
  holder.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto dropped = waiting.emit(Work{});
  auto survivor = last.emit(Work{});

  SECTION("the holder only") {
    holder.destroy();
    dropped.wait();
    survivor.wait();
    REQUIRE(statuses(dropped) == Names{"completed"});
  }
  SECTION("the one that waits for it, then the holder") {
    waiting.destroy();
    REQUIRE(survivor.event_status() == EventStatus::pending);
    holder.destroy();
    survivor.wait();
    REQUIRE(dropped.event_status() == EventStatus::pending);
  }
  SECTION("the one that waits for it, and the holder goes on") {
    waiting.destroy();
    gate.open();
    survivor.wait();
  }
  REQUIRE(statuses(survivor) == Names{"completed"});
}

TEST_CASE("the global lock stays with an exempt run until it ends", "[S-DST-14][S-DST-11]") {
  Gate gate;
  Recorder log;
  const EventBusOptions options{.event_concurrency = EventConcurrency::global_serial, .domain = Domain()};
  EventBus other("DstGlobalOther", options);
  EventBus bus("DstGlobalExempt", options);
  other.on<Work>([&](const Work&) { log.add("other"); });
  bus.on<Work>([&](const Work&) {
    bus.destroy();
    gate.wait();
    log.add("exempt_end");
    return 1;
  });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  auto next = other.emit(Work{});
  std::this_thread::sleep_for(30ms);
  REQUIRE(log.notes().empty());
  gate.open();
  next.wait();
  event.wait();
  REQUIRE(log.notes() == Names{"exempt_end", "other"});
  REQUIRE(statuses(event) == Names{"completed"});
}

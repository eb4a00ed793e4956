// What users of comparable libraries reported about ends: unsubscribing and shutting down.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Ping {
  int number = 0;
};

// Symptom: unsubscribing from inside a callback waits for itself, or the callback's object goes while it runs.
TEST_CASE("off never blocks, and a callable lives until its last run has ended", "[S-REG-16][S-REG-11]") {
  Gate gate;
  EventBus bus("PitfallOff");
  const OpenAtExit opener(gate);
  auto captured = std::make_shared<int>(42);
  const std::weak_ptr<int> watch = captured;
  std::optional<EventHandler> handler;
  std::atomic<int> seen{0};
  handler = bus.on<Ping>([&bus, &handler, &gate, &seen, held = std::move(captured)](const Ping&) {
    bus.off(*handler);
    gate.wait();
    seen = *held;
  });
  const auto event = bus.emit(Ping{});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(bus.handler_count() == 0);
  const auto start = Clock::now();
  bus.off(*handler);
  bus.off<Ping>();
  CHECK(seconds_since(start) < 2.0);
  CHECK_FALSE(watch.expired());
  gate.open();
  settled(event);
  CHECK(seen == 42);
  // What was captured is gone once the last run has ended, although entry, event and result are still held.
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(eventually([&] { return watch.expired(); }));
  CHECK(event.event_results()[0].handler_id() == handler->id());
}

// Symptom: an object is destroyed under the library's lock, and its destructor, which calls back, deadlocks.
TEST_CASE("a callable's destructor may call the bus", "[S-MT-18][S-MT-5]") {
  EventBus bus("PitfallDestructor");
  std::atomic<int> destroyed{0};
  struct CallsBack {
    EventBusRef bus;
    std::atomic<int>* destroyed;
    ~CallsBack() {
      if (!bus.is_destroyed()) {
        bus.off("*");
        bus.handlers_by_key();
      }
      ++*destroyed;
    }
  };
  auto first = std::make_shared<CallsBack>(CallsBack{bus, &destroyed});
  destroyed = 0;
  bus.on<Ping>([held = std::move(first)](const Ping&) {});
  settled(bus.emit(Ping{}));
  bus.off<Ping>();
  CHECK(eventually([&] { return destroyed > 0; }));
}

// Symptom: there is no way to unsubscribe, so long-lived programs grow.
TEST_CASE("handlers leave by entry, by id and by callable, and take their captures along", "[S-REG-11]") {
  EventBus bus("PitfallUnsubscribe");
  std::vector<std::weak_ptr<int>> watches;
  const auto counted = [&] {
    auto value = std::make_shared<int>(1);
    watches.push_back(value);
    return [value = std::move(value)](const Ping&) { return *value; };
  };
  const EventHandler by_entry = bus.on<Ping>(counted());
  const EventHandler by_id = bus.on<Ping>(counted());
  using Function = decltype(counted());
  auto callable = std::make_shared<Function>(counted());
  bus.on<Ping>(callable);
  CHECK(settled(bus.emit(Ping{})).event_results().size() == 3);
  bus.off(by_entry);
  bus.off<Ping>(by_id.id());
  bus.off<Ping>(callable);
  callable.reset();
  CHECK(bus.handler_count() == 0);
  CHECK(settled(bus.emit(Ping{})).event_results().empty());
  REQUIRE(bus.wait_until_idle(patience));
  for (const auto& watch : watches) CHECK(eventually([&] { return watch.expired(); }));
}

// Symptom: after deregistration something still starts, and those who wait are left in silence.
TEST_CASE("after destroy no handler starts and those who wait are told", "[S-DST-7][S-DST-9]") {
  Gate gate;
  EventBus bus("PitfallShutdown", {.max_history_size = std::nullopt});
  const OpenAtExit opener(gate);
  std::atomic<int> started{0};
  bus.on<Ping>([&](const Ping&) {
    ++started;
    gate.wait();
  });
  const auto running = bus.emit(Ping{0});
  REQUIRE(gate.wait_for_arrivals(1));
  std::vector<Event<Ping>> queued;
  for (int i = 1; i < 50; ++i) queued.push_back(bus.emit(Ping{i}));
  std::atomic<int> told{0};
  std::thread waiter([&] {
    try {
      queued.back().wait();
    } catch (const EventBusDestroyedError&) {
      ++told;
    }
  });
  auto pending = queued.front().wait_async();
  bus.destroy();
  waiter.join();
  CHECK(told == 1);
  CHECK_THROWS_AS(pending.get(), EventBusDestroyedError);
  gate.open();
  settled(running);
  CHECK(running.event_results()[0].error_type() == "EventHandlerAbortedError");
  std::this_thread::sleep_for(20ms);
  CHECK(started == 1);
  for (const auto& event : queued) CHECK(event.event_status() == EventStatus::pending);
}

// Symptom: shutting down hangs now and then.
TEST_CASE("buses with work in flight end promptly, many times over", "[S-DST-13]") {
  std::atomic<int> handled{0};
  double slowest = 0;
  for (int i = 0; i < 300; ++i) {
    const auto start = Clock::now();
    {
      EventBus bus("PitfallManyEnds");
      bus.on<Ping>([&](const Ping&) { ++handled; });
      for (int n = 0; n < 10; ++n) bus.emit(Ping{n});
    }
    slowest = std::max(slowest, seconds_since(start));
  }
  CHECK(slowest < 4.0);
}

// Symptom: the last owner is let go on the worker, which then joins itself.
TEST_CASE("the last owner of a bus may be let go in that bus's own handler", "[S-DST-13][S-DST-11]") {
  auto bus = std::make_shared<EventBus>("PitfallSelfDestroy");
  const EventBusRef reference = *bus;
  Gate done;
  Gate go;
  std::atomic<bool> destroyed_inside{false};
  bus->on<Ping>([owner = std::make_shared<std::shared_ptr<EventBus>>(bus), reference, &done, &go,
                 &destroyed_inside](const Ping&) {
    go.wait();
    owner->reset();
    destroyed_inside = reference.is_destroyed();
    done.open();
    return 5;
  });
  const auto event = bus->emit(Ping{});
  bus.reset();
  go.open();
  REQUIRE(done.wait());
  CHECK(destroyed_inside);
  settled(event);
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_results()[0].result_as<int>() == std::optional(5));
  CHECK(reference.expired());
}

}  // namespace

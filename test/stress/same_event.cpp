// The same event object emitted from several threads at once.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Shared {
  int number = 0;
};

/// Two threads that go through the same events in step.
template <class F>
void in_step(Watchdog& watchdog, int rounds, F act) {
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        ++arrived;
        while (arrived < 2 * (i + 1)) std::this_thread::yield();
        act(t, static_cast<std::size_t>(i));
        if (t == 0 && i % 64 == 0) watchdog.alive();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

std::vector<Event<Shared>> fresh_events(int count) {
  std::vector<Event<Shared>> events;
  for (int i = 0; i < count; ++i) events.push_back(make_event(Shared{i}));
  return events;
}

TEST_CASE("one event emitted twice at once on one bus is accepted once", "[stress][S-MT-3][H-FWD-3][S-HND-6]") {
  Watchdog watchdog("one bus");
  for (const auto mode : {EventConcurrency::bus_serial, EventConcurrency::parallel}) {
    const int rounds = scaled(20000, 500);
    EventBus bus("StressSameOne", {.event_concurrency = mode, .max_history_size = std::nullopt});
    std::atomic<int> handled{0};
    bus.on<Shared>([&](const Shared&) { ++handled; });
    const auto events = fresh_events(rounds);
    in_step(watchdog, rounds, [&](int, std::size_t i) { bus.emit(events[i]); });
    REQUIRE(bus.wait_until_idle());
    CHECK(handled == rounds);
    CHECK(bus.event_history().size() == static_cast<std::size_t>(rounds));
    int wrong = 0;
    for (const auto& event : events) {
      if (event.event_path() != std::vector<std::string>{bus.label()} || event.event_results().size() != 1 ||
          event.event_status() != EventStatus::completed || event.event_pending_bus_count() != 0)
        ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("one event emitted at once on two buses is accepted once by each", "[stress][S-MT-3][S-MT-11][Q-13]") {
  Watchdog watchdog("two buses");
  const int rounds = scaled(20000, 500);
  EventBus one("StressSameA", {.max_history_size = std::nullopt});
  EventBus two("StressSameB", {.max_history_size = std::nullopt});
  std::atomic<int> handled_one{0};
  std::atomic<int> handled_two{0};
  one.on<Shared>([&](const Shared&) { ++handled_one; });
  two.on<Shared>([&](const Shared&) { ++handled_two; });
  const auto events = fresh_events(rounds);
  in_step(watchdog, rounds, [&](int t, std::size_t i) { (t == 0 ? one : two).emit(events[i]); });
  REQUIRE(one.wait_until_idle());
  REQUIRE(two.wait_until_idle());
  // Accepted by the second bus when the first had completed it already: then that bus's handlers do not run.
  int wrong = 0;
  int ran_twice = 0;
  for (const auto& event : events) {
    event.wait();
    std::vector<std::string> path = event.event_path();
    std::sort(path.begin(), path.end());
    std::vector<std::string> labels{one.label(), two.label()};
    std::sort(labels.begin(), labels.end());
    const std::size_t results = event.event_results().size();
    if (path != labels || results < 1 || results > 2 || event.event_pending_bus_count() != 0) ++wrong;
    if (results == 2) ++ran_twice;
    for (const auto& result : event.event_results())
      if (result.status() != EventResultStatus::completed) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(handled_one + handled_two == rounds + ran_twice);
  CHECK(one.event_history().size() == static_cast<std::size_t>(rounds));
  CHECK(two.event_history().size() == static_cast<std::size_t>(rounds));
}

TEST_CASE("two forwarders race to one target", "[stress][H-FWD-3][H-FWD-7]") {
  Watchdog watchdog("two forwarders");
  const int rounds = scaled(10000, 300);
  EventBus source("StressFanSource",
                  {.event_handler_concurrency = EventHandlerConcurrency::parallel, .max_history_size = 0});
  EventBus target("StressFanTarget", {.max_history_size = 0});
  std::atomic<int> handled{0};
  source.on("*", target.forwarder());
  source.on("*", target.forwarder());
  target.on<Shared>([&](const Shared&) { ++handled; });
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto event = source.emit(Shared{i});
    event.wait();
    if (event.event_path().size() != 2 || event.event_results().size() != 3) ++wrong;
    watchdog.alive();
  }
  CHECK(wrong == 0);
  CHECK(handled == rounds);
}

TEST_CASE("many callers await one event", "[stress][S-JMP-7][S-HND-6]") {
  Watchdog watchdog("many callers");
  const int rounds = scaled(10000, 300);
  EventBus bus("StressCallers", {.max_history_size = 0});
  std::vector<std::atomic<int>> calls(static_cast<std::size_t>(rounds));
  bus.on<Shared>([&](const Shared& shared) { return ++calls[static_cast<std::size_t>(shared.number)]; });
  const auto events = fresh_events(rounds);
  std::atomic<int> wrong{0};
  in_step(watchdog, rounds, [&](int t, std::size_t i) {
    bus.emit(events[i]);
    if (t == 0)
      events[i].now();
    else if (i % 2 == 0)
      events[i].now();
    else
      events[i].wait();
    if (events[i].event_status() != EventStatus::completed || calls[i] != 1) ++wrong;
  });
  CHECK(wrong == 0);
}

}  // namespace

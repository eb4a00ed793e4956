// find: waiting for events that are still to come.

#include "support/catch.hpp"
#include "support/history.hpp"
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

struct Ping {
  int number = 0;
};
struct Pong {
  int number = 0;
};
struct Held {
  int number = 0;
};

TEST_CASE("a future search takes the next accepted match", "[H-FIND-14]") {
  EventBus bus("FutureNext");
  EventBus other("FutureOther");
  auto waiting = bus.find_async<Ping>(
      {.past = false, .future = true, .where = [](const Event<Ping>& each) { return each->number >= 10; }});
  CHECK(bus.find_waiter_count() == 1);
  other.emit(Ping{10});
  bus.emit(Pong{10});
  bus.emit(Ping{1});
  CHECK_FALSE(waiting.ready());
  const auto match = bus.emit(Ping{11});
  bus.emit(Ping{12});
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(match));
}

TEST_CASE("the past window does not apply to what is still to come", "[H-FIND-14]") {
  EventBus bus("FutureOldCreation");
  auto waiting = bus.find_async<Ping>({.past = 1s, .future = true});
  const auto event = bus.emit(Ping{1}, {.event_created_at = created_before(60s)});
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(event));
}

TEST_CASE("a future window ends with nothing, not early and not much later", "[H-FIND-14]") {
  EventBus bus("FutureEnds");
  const auto start = Clock::now();
  CHECK_FALSE(bus.find<Ping>({.past = false, .future = 50ms}).has_value());
  const double elapsed = seconds_since(start);
  CHECK(elapsed >= 0.0495);
  CHECK(elapsed < 3.0);

  auto waiting = bus.find_async("*", {.future = 50ms});
  CHECK_FALSE(waiting.get().has_value());
  CHECK(seconds_since(start) >= elapsed + 0.0495);
  CHECK(bus.find_waiter_count() == 0);
}

TEST_CASE("an empty or negative future window does not wait", "[H-FIND-14]") {
  EventBus bus("FutureEmpty");
  const auto start = Clock::now();
  CHECK_FALSE(bus.find<Ping>({.past = false, .future = 0s}).has_value());
  CHECK_FALSE(bus.find<Ping>({.past = true, .future = -5s}).has_value());
  CHECK(bus.find_async<Ping>({.past = true, .future = -5s}).ready());
  CHECK(seconds_since(start) < 2.0);
}

TEST_CASE("the match is there before the event's handlers are done", "[H-FIND-15]") {
  Gate gate;
  EventBus bus("FutureBefore");
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held& held) {
    gate.wait();
    return held.number;
  });
  auto waiting = bus.find_async<Held>({.past = false, .future = true});
  bus.emit(Held{5});
  REQUIRE(waiting.wait_for(patience));
  const auto found = waiting.get();
  REQUIRE(found);
  CHECK(found->event_status() != EventStatus::completed);
  gate.open();
  settled(*found);
  CHECK(found->event_results()[0].result_as<int>() == std::optional(5));
}

TEST_CASE("with a closed past only later events match", "[H-FIND-16]") {
  Gate gate;
  EventBus bus("FutureLater");
  const OpenAtExit opener(gate);
  bus.on<Held>([&](const Held&) { gate.wait(); });
  bus.emit(Held{1});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.emit(Held{2});
  auto waiting = bus.find_async<Held>({.past = false, .future = true});
  CHECK_FALSE(waiting.wait_for(20ms));
  const auto later = bus.emit(Held{3});
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(later));
}

TEST_CASE("past and future windows are independent", "[H-FIND-17]") {
  EventBus bus("FutureIndependent");
  settled(bus.emit(Ping{1}, {.event_created_at = created_before(150ms)}));
  const auto start = Clock::now();
  CHECK_FALSE(bus.find<Ping>({.past = 50ms, .future = 50ms}).has_value());
  const double elapsed = seconds_since(start);
  CHECK(elapsed >= 0.0495);
  CHECK(elapsed < 3.0);

  auto waiting = bus.find_async<Ping>({.past = 50ms, .future = patience});
  CHECK_FALSE(waiting.ready());
  const auto fresh = bus.emit(Ping{2});
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(fresh));
}

TEST_CASE("an event emitted while find is called is found, once", "[H-FIND-18]") {
  EventBus bus("FutureHandOver", {.max_history_size = 50, .max_history_drop = true});
  bus.on<Ping>([](const Ping&) {});
  constexpr int rounds = 400;
  std::atomic<int> turn{0};
  std::thread emitter([&] {
    for (int i = 1; i <= rounds; ++i) {
      while (turn.load() < i) std::this_thread::yield();
      bus.emit(Ping{i});
    }
  });
  int missed = 0;
  int reported = 0;
  for (int i = 1; i <= rounds; ++i) {
    std::atomic<int> matches{0};
    turn = i;
    const auto found = bus.find<Ping>({.past = true, .future = patience, .where = [&](const Event<Ping>& each) {
                                         if (each->number != i) return false;
                                         ++matches;
                                         return true;
                                       }});
    if (!found || (*found)->number != i) ++missed;
    reported += matches.load();
  }
  emitter.join();
  CHECK(missed == 0);
  CHECK(reported == rounds);
  CHECK(bus.find_waiter_count() == 0);
}

TEST_CASE("waiters are independent and each takes its first match only", "[H-FIND-19]") {
  EventBus bus("FutureWaiters", {.max_history_size = std::nullopt});
  const auto number_is = [](int wanted) {
    return [wanted](const Event<Ping>& each) { return each->number == wanted; };
  };
  for (const bool reversed : {false, true}) {
    auto wait_a = bus.find_async<Ping>({.past = false, .future = true, .where = number_is(1)});
    auto wait_s = bus.find_async<Pong>({.past = false, .future = true});
    auto wait_b = bus.find_async<Ping>({.past = false, .future = true, .where = number_is(2)});
    CHECK(bus.find_waiter_count() == 3);
    std::optional<Event<Ping>> a;
    std::optional<Event<Ping>> b;
    if (!reversed) a = bus.emit(Ping{1});
    if (reversed) b = bus.emit(Ping{2});
    const auto s = bus.emit(Pong{0});
    if (!reversed) b = bus.emit(Ping{2});
    if (reversed) a = bus.emit(Ping{1});
    CHECK(wait_a.get() == a);
    CHECK(wait_s.get() == std::optional(s));
    CHECK(wait_b.get() == b);
    CHECK(bus.find_waiter_count() == 0);
  }
}

TEST_CASE("one event resolves every waiter that it matches", "[H-FIND-19]") {
  EventBus bus("FutureMany");
  std::vector<future<std::optional<BaseEvent>>> waiting;
  for (int i = 0; i < 10; ++i)
    waiting.push_back(bus.find_async(i % 2 == 0 ? "Ping" : "*", {.past = false, .future = true}));
  const auto first = bus.emit(Ping{1});
  bus.emit(Ping{2});
  for (auto& each : waiting) CHECK(each.get() == std::optional<BaseEvent>(first));
}

TEST_CASE("waiters are no handlers, and idleness ignores them", "[H-FIND-22]") {
  EventBus bus("FutureNoHandler");
  auto waiting = bus.find_async<Ping>({.past = false, .future = true});
  CHECK(bus.handlers().empty());
  CHECK(bus.handlers_by_key().empty());
  CHECK(bus.find_waiter_count() == 1);
  CHECK(bus.is_idle_and_queue_empty());
  CHECK(bus.wait_until_idle(patience));
  const auto event = settled(bus.emit(Ping{1}));
  CHECK(waiting.get() == std::optional(event));
  CHECK(event.event_results().empty());
}

TEST_CASE("the waiter count falls back after a match, a timeout, a stop and a dropped future", "[H-FIND-22]") {
  EventBus bus("FutureCount");
  auto other = bus.find_async("Other", {.past = false, .future = true});
  REQUIRE(bus.find_waiter_count() == 1);

  auto matched = bus.find_async<Ping>({.past = false, .future = true});
  CHECK(bus.find_waiter_count() == 2);
  bus.emit(Ping{1});
  CHECK(matched.get().has_value());
  CHECK(bus.find_waiter_count() == 1);

  CHECK_FALSE(bus.find<Ping>({.past = false, .future = 5ms}).has_value());
  CHECK(bus.find_waiter_count() == 1);

  std::stop_source stop;
  auto stopped = bus.find_async<Ping>({.past = false, .future = true, .stop_token = stop.get_token()});
  CHECK(bus.find_waiter_count() == 2);
  stop.request_stop();
  CHECK_THROWS_AS(stopped.get(), OperationCancelled);
  CHECK(bus.find_waiter_count() == 1);

  { const auto dropped = bus.find_async<Ping>({.past = false, .future = true}); }
  CHECK(eventually([&] { return bus.find_waiter_count() == 1; }));
  CHECK_FALSE(other.ready());
}

TEST_CASE("a stop ends a blocking find in another thread", "[H-FIND-22]") {
  EventBus bus("FutureStop");
  std::stop_source stop;
  std::atomic<bool> cancelled{false};
  std::thread caller([&] {
    try {
      bus.find<Ping>({.past = false, .future = true, .stop_token = stop.get_token()});
    } catch (const OperationCancelled&) {
      cancelled = true;
    }
  });
  CHECK(eventually([&] { return bus.find_waiter_count() == 1; }));
  stop.request_stop();
  caller.join();
  CHECK(cancelled);
  CHECK(bus.find_waiter_count() == 0);
}

TEST_CASE("an emit that does nothing resolves nothing", "[H-FIND-23]") {
  EventBus bus("FutureNoOp");
  const auto event = settled(bus.emit(Ping{1}));
  auto waiting = bus.find_async<Ping>({.past = false, .future = true});
  bus.emit(event);
  CHECK_FALSE(waiting.wait_for(20ms));
  CHECK(bus.find_waiter_count() == 1);
}

TEST_CASE("a rejected emit resolves nothing", "[H-FIND-23]") {
  EventBus bus("FutureRejected", {.max_history_size = 1});
  settled(bus.emit(Ping{1}));
  int called = 0;
  auto waiting = bus.find_async<Ping>({.past = false, .future = true, .where = [&](const Event<Ping>&) {
                                         ++called;
                                         return true;
                                       }});
  REQUIRE_THROWS_AS(bus.emit(Ping{2}), EventBusHistoryLimitError);
  CHECK_FALSE(waiting.wait_for(20ms));
  CHECK(called == 0);
}

TEST_CASE("a forwarded event resolves the target's waiters when the target accepts it", "[H-FIND-23]") {
  Gate gate;
  EventBus source("FutureForwardA");
  EventBus target("FutureForwardB");
  const OpenAtExit opener(gate);
  source.on<Ping>([&](const Event<Ping>& event) {
    gate.wait();
    target.emit(event);
  });
  auto waiting = target.find_async<Ping>({.past = false, .future = true});
  const auto event = source.emit(Ping{1});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK_FALSE(waiting.ready());
  gate.open();
  REQUIRE(waiting.wait_for(patience));
  CHECK(waiting.get() == std::optional(event));
}

TEST_CASE("destroy ends every waiting find with nothing", "[H-FIND-24]") {
  for (const bool clear : {true, false}) {
    EventBus bus(clear ? "FutureDestroyClear" : "FutureDestroyKeep");
    std::atomic<int> ended{0};
    std::thread caller([&] {
      if (!bus.find<Ping>({.past = false, .future = true})) ++ended;
    });
    auto waiting = bus.find_async("*", {.past = false, .future = 600s});
    CHECK(eventually([&] { return bus.find_waiter_count() == 2; }));
    const auto start = Clock::now();
    bus.destroy(clear);
    CHECK(waiting.wait_for(patience));
    CHECK_FALSE(waiting.get().has_value());
    caller.join();
    CHECK(ended == 1);
    CHECK(seconds_since(start) < 5.0);
  }
}

TEST_CASE("find on a destroyed bus throws", "[H-FIND-24]") {
  EventBus bus("FutureDestroyed");
  bus.destroy();
  CHECK_THROWS_AS(bus.find<Ping>(), EventBusDestroyedError);
  CHECK_THROWS_AS(bus.find("*", {.past = false, .future = false}), EventBusDestroyedError);
  CHECK_THROWS_AS(bus.find_async("*", {.past = false, .future = true}), EventBusDestroyedError);
}

}  // namespace

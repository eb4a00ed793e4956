// How the handlers of one run relate: S-HND-1 to S-HND-6, S-HND-9, S-HND-10.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Notes = std::vector<std::string>;

struct RunEvent {
  int number = 0;
};
struct StepEvent {};
struct ProbeRun {};

constexpr auto serial = EventHandlerConcurrency::serial;
constexpr auto parallel = EventHandlerConcurrency::parallel;
constexpr auto parallel_events = EventConcurrency::parallel;

TEST_CASE("all results are there, pending, before the first handler is called", "[S-HND-1]") {
  for (const EventHandlerConcurrency mode : {serial, parallel}) {
    std::vector<EventResultStatus> seen;
    std::atomic<bool> first = true;
    EventBus bus("ResultsFirst", {.event_handler_concurrency = mode});
    const auto handler = [&](const BaseEvent& event) {
      if (!first.exchange(false)) return;
      for (const EventResult& result : event.event_results()) seen.push_back(result.status());
    };
    bus.on("*", handler);
    bus.on<RunEvent>(handler);
    bus.on<RunEvent>(handler);
    bus.emit(RunEvent{}).wait();
    REQUIRE(seen.size() == 3);
    if (mode == serial) {
      CHECK(seen == std::vector{EventResultStatus::started, EventResultStatus::pending, EventResultStatus::pending});
    }
  }
}

TEST_CASE("serial handlers run one after another, each after the previous result is settled", "[S-HND-2]") {
  const CapturedLog log;
  Gate gate;
  Recorder order;
  EventBus bus("OneAfterAnother");
  const OpenAtExit open(gate);
  const auto noting = [&](std::string name, std::size_t index) {
    return [&order, name, index](const BaseEvent& event) {
      std::string note = name;
      const EventResults results = event.event_results();
      for (std::size_t i = 0; i < index; ++i) note += " " + std::string(to_string(results[i].status()));
      order.add(note);
    };
  };
  bus.on("*", noting("last", 3));
  bus.on<RunEvent>([&](const RunEvent&) {
    order.add("throws");
    throw std::runtime_error("first fails");
  });
  bus.on<RunEvent>([&](const RunEvent&) { gate.wait(); }, {.handler_timeout = 20ms});
  bus.on<RunEvent>(noting("third", 2));
  const auto event = bus.emit(RunEvent{});
  event.wait();
  CHECK(order.notes() == Notes{"throws", "third error error", "last error error completed"});
  const EventResults results = event.event_results();
  for (std::size_t i = 1; i < results.size(); ++i) CHECK(*results[i].started_at() >= *results[i - 1].completed_at());
}

TEST_CASE("the next serial handler does not start while one waits", "[S-HND-3]") {
  Gate gate;
  Recorder order;
  EventBus bus("WaitsInside");
  EventBus side("WaitsInsideSide");
  const OpenAtExit open(gate);
  side.on<StepEvent>([&](const StepEvent&) { gate.wait(); });
  const auto check = [&] {
    bus.on<RunEvent>([&](const RunEvent&) { order.add("second"); });
    const auto event = bus.emit(RunEvent{});
    REQUIRE(gate.wait_for_arrivals(1));
    for (int i = 0; i < 3; ++i) bus.emit(ProbeRun{}, {.event_concurrency = parallel_events}).wait();
    CHECK(order.notes() == Notes{"first waits"});
    CHECK(event.event_results()[1].status() == EventResultStatus::pending);
    gate.open();
    event.wait();
    CHECK(order.notes() == Notes{"first waits", "first goes on", "second"});
  };

  SECTION("now") {
    bus.on<RunEvent>([&](const RunEvent&) {
      order.add("first waits");
      side.emit(StepEvent{}).now();
      order.add("first goes on");
    });
    check();
  }
  SECTION("wait") {
    bus.on<RunEvent>([&](const RunEvent&) {
      order.add("first waits");
      side.emit(StepEvent{}).wait();
      order.add("first goes on");
    });
    check();
  }
  SECTION("co_await now") {
    bus.on<RunEvent>([&](Event<RunEvent>) -> task<> {
      order.add("first waits");
      const auto child = side.emit(StepEvent{});
      co_await child.now_async();
      order.add("first goes on");
    });
    check();
  }
  SECTION("co_await wait") {
    bus.on<RunEvent>([&](Event<RunEvent>) -> task<> {
      order.add("first waits");
      const auto child = side.emit(StepEvent{});
      co_await child.wait_async();
      order.add("first goes on");
    });
    check();
  }
}

TEST_CASE("parallel handlers all start, and the run lasts until all are settled", "[S-HND-4]") {
  constexpr int count = 5;
  Gate gate;
  Meeting meeting;
  EventBus bus("AllStart", {.event_handler_concurrency = parallel});
  const OpenAtExit open(gate);
  bus.on("*", [&](const BaseEvent&) { return meeting.meet(count); });
  for (int i = 0; i < count - 2; ++i) bus.on<RunEvent>([&](const RunEvent&) { return meeting.meet(count); });
  bus.on<RunEvent>([&](const RunEvent&) {
    const bool met = meeting.meet(count);
    gate.wait();
    return met;
  });
  const auto event = bus.emit(RunEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(eventually([&] {
    int settled = 0;
    for (const EventResult& result : event.event_results()) settled += result.completed_at() ? 1 : 0;
    return settled == count - 1;
  }));
  CHECK(event.event_status() == EventStatus::started);
  gate.open();
  event.wait();
  CHECK(meeting.max() == count);
  const EventResults results = event.event_results();
  REQUIRE(results.size() == count);
  for (const EventResult& result : results) CHECK(result.result_as<bool>() == true);
  for (const EventResult& result : results) CHECK(result.started_at());
}

TEST_CASE("serial is a matter of one event: handlers of two parallel events overlap", "[S-HND-5][S-HND-9]") {
  Meeting everyone;
  std::array<Meeting, 2> within;
  EventBus bus("ScopeOfSerial", {.event_concurrency = parallel_events, .event_handler_concurrency = serial});
  for (int i = 0; i < 2; ++i) {
    bus.on<RunEvent>([&](const RunEvent& event) {
      const bool met = everyone.meet(2);
      within[static_cast<std::size_t>(event.number)].meet(2, 5ms);
      return met;
    });
  }
  const auto zero = bus.emit(RunEvent{0});
  const auto one = bus.emit(RunEvent{1});
  for (const BaseEvent& event : {zero, one}) {
    event.wait();
    for (const EventResult& result : event.event_results()) CHECK(result.result_as<bool>() == true);
  }
  CHECK(everyone.max() == 2);
  CHECK(within[0].max() == 1);
  CHECK(within[1].max() == 1);
}

TEST_CASE("one callable on two buses is not serialized across them", "[S-HND-9]") {
  Meeting meeting;
  EventBus a("AcrossA", {.event_handler_concurrency = serial});
  EventBus b("AcrossB", {.event_handler_concurrency = serial});
  const auto shared =
      std::make_shared<std::function<bool(const RunEvent&)>>([&](const RunEvent&) { return meeting.meet(2); });
  a.on<RunEvent>(shared);
  b.on<RunEvent>(shared);
  const auto on_a = a.emit(RunEvent{1});
  const auto on_b = b.emit(RunEvent{2});
  CHECK(on_a.wait().event_result<bool>() == true);
  CHECK(on_b.wait().event_result<bool>() == true);
  CHECK_THROWS_AS(from_string<EventHandlerConcurrency>("global-serial"), ValidationError);
  CHECK_THROWS_AS(from_string<EventHandlerConcurrency>("bus-serial"), ValidationError);
}

TEST_CASE("a handler is called once an event, however many ask for it", "[S-HND-6]") {
  constexpr std::size_t events = 40;
  std::array<std::atomic<int>, events> first{};
  std::array<std::atomic<int>, events> second{};
  EventBus bus("OnceOnly");
  bus.on<RunEvent>([&](const RunEvent& event) { ++first[static_cast<std::size_t>(event.number)]; });
  bus.on("*", [&](const BaseEvent& event) { ++second[static_cast<std::size_t>(event.payload_as<RunEvent>().number)]; });
  for (std::size_t i = 0; i < events; ++i) {
    const auto event = make_event(RunEvent{static_cast<int>(i)},
                                  {.event_concurrency = i % 2 ? parallel_events : EventConcurrency::bus_serial});
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        bus.emit(event);
        if (t % 2) {
          event.now();
        } else {
          event.wait();
        }
      });
    }
  }
  CHECK(bus.wait_until_idle());
  CHECK(std::all_of(first.begin(), first.end(), [](const auto& calls) { return calls == 1; }));
  CHECK(std::all_of(second.begin(), second.end(), [](const auto& calls) { return calls == 1; }));
  CHECK(bus.event_history().size() == events);
}

TEST_CASE("a handler is called once on each bus of a forwarded event", "[S-HND-6]") {
  std::atomic<int> on_a = 0;
  std::atomic<int> on_b = 0;
  EventBus a("OnceA");
  EventBus b("OnceB");
  a.on<RunEvent>([&](const RunEvent&) { ++on_a; });
  b.on<RunEvent>([&](const RunEvent&) { ++on_b; });
  a.on("*", b.forwarder());
  const auto event = a.emit(RunEvent{1});
  b.emit(event);
  event.wait();
  CHECK(a.wait_until_idle());
  CHECK(b.wait_until_idle());
  CHECK(on_a == 1);
  CHECK(on_b == 1);
}

TEST_CASE("two handlers of a default bus", "[S-HND-10][S-HND-2]") {
  Recorder order;
  EventBus bus("TwoHandlers");
  for (const std::string name : {"h1", "h2"}) {
    bus.on<RunEvent>([&, name](const RunEvent&) {
      order.add(name + "_start");
      std::this_thread::sleep_for(2ms);
      order.add(name + "_end");
    });
  }
  bus.emit(RunEvent{}).wait();
  CHECK(order.notes() == Notes{"h1_start", "h1_end", "h2_start", "h2_end"});
}

TEST_CASE("two parallel handlers of 100 ms take clearly less than 200 ms", "[S-HND-10][S-HND-4]") {
  EventBus bus("TwoAtOnce", {.event_handler_concurrency = parallel});
  for (int i = 1; i <= 2; ++i) {
    bus.on<RunEvent>([i](const RunEvent&) {
      std::this_thread::sleep_for(100ms);
      return i;
    });
  }
  // The machine may be busy: one of several tries has to make it.
  double best = 1;
  for (int attempt = 0; attempt < 8 && best >= 0.19; ++attempt) {
    const auto start = Clock::now();
    const auto event = bus.emit(RunEvent{});
    event.wait();
    best = std::min(best, seconds_since(start));
    CHECK(event.event_results_list<int>() == std::vector<std::optional<int>>{1, 2});
  }
  CHECK(best >= 0.1);
  CHECK(best < 0.19);
}

TEST_CASE("events override the bus's handler concurrency", "[S-HND-10]") {
  std::array<Meeting, 2> inside;
  EventBus bus("OverridesHandlers", {.event_handler_concurrency = parallel});
  for (int i = 0; i < 2; ++i) {
    bus.on<RunEvent>([&](const RunEvent& event) {
      inside[static_cast<std::size_t>(event.number)].meet(2, event.number == 0 ? Clock::duration(15ms) : patience);
    });
  }
  bus.emit(RunEvent{0}, {.event_handler_concurrency = serial}).wait();
  bus.emit(RunEvent{1}, {.event_handler_concurrency = parallel}).wait();
  CHECK(inside[0].max() == 1);
  CHECK(inside[1].max() == 2);
}

}  // namespace

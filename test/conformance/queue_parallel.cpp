// Parallel-mode events, and what the queue shows.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Notes = std::vector<std::string>;

struct JobEvent {
  int number = 0;
};
struct StopEvent {};

constexpr auto parallel = EventConcurrency::parallel;

TEST_CASE("a parallel event runs while a serial handler is blocked", "[Q-4]") {
  Gate gate;
  Recorder order;
  EventBus bus("PassesBlocked");
  const OpenAtExit open(gate);
  bus.on<StopEvent>([&](const StopEvent&) {
    order.add("blocked");
    gate.wait();
    order.add("released");
  });
  bus.on<JobEvent>([&](const JobEvent& event) { order.add("job" + std::to_string(event.number)); });
  const auto blocker = bus.emit(StopEvent{});
  const auto queued = bus.emit(JobEvent{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto event = bus.emit(JobEvent{2}, {.event_concurrency = parallel});
  event.wait({.timeout = patience});
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(order.notes() == Notes{"blocked", "job2"});
  CHECK(blocker.event_status() == EventStatus::started);
  CHECK(queued.event_status() == EventStatus::pending);
  gate.open();
  queued.wait();
  CHECK(order.notes() == Notes{"blocked", "job2", "released", "job1"});
}

TEST_CASE("a parallel event does not wait for the domain's global lock", "[Q-4]") {
  Gate gate;
  const Domain domain;
  EventBus holder("PassesGlobalHolder", {.event_concurrency = EventConcurrency::global_serial, .domain = domain});
  EventBus bus("PassesGlobal", {.event_concurrency = EventConcurrency::global_serial, .domain = domain});
  const OpenAtExit open(gate);
  holder.on<StopEvent>([&](const StopEvent&) { gate.wait(); });
  const auto blocker = holder.emit(StopEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(bus.emit(JobEvent{1}, {.event_concurrency = parallel}).wait({.timeout = patience}).event_status() ==
        EventStatus::completed);
  CHECK(holder.emit(JobEvent{2}, {.event_concurrency = parallel}).wait({.timeout = patience}).event_status() ==
        EventStatus::completed);
  CHECK(blocker.event_status() == EventStatus::started);
}

TEST_CASE("a serial handler may wait for a parallel event that it emits", "[Q-4]") {
  EventBus bus("AwaitsParallel");
  bus.on<JobEvent>([](const JobEvent& event) { return event.number; });
  bus.on<StopEvent>([&](const StopEvent&) {
    const auto child = bus.emit(JobEvent{5}, {.event_concurrency = parallel});
    child.wait({.timeout = patience});
    return child.event_status() == EventStatus::completed;
  });
  CHECK(bus.emit(StopEvent{}).wait().event_result<bool>() == true);
}

TEST_CASE("parallel events keep acceptance order in the history and in their starts", "[Q-9]") {
  EventBus bus("ParallelOrder", {.event_concurrency = parallel, .max_history_size = std::nullopt});
  bus.on<JobEvent>([](const JobEvent&) {});
  std::vector<BaseEvent> events;
  for (int i = 0; i < 200; ++i) events.push_back(bus.emit(JobEvent{i}));
  for (const BaseEvent& event : events) event.wait();
  CHECK(bus.event_history().events() == events);
  int decreasing = 0;
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (*events[i].event_started_at() < *events[i - 1].event_started_at()) ++decreasing;
  }
  CHECK(decreasing == 0);
}

TEST_CASE("inside a parallel event the handler mode applies unchanged", "[Q-9]") {
  std::mutex mutex;
  std::map<int, std::string> runs;
  EventBus bus("ParallelInside", {.event_concurrency = parallel});
  for (const char name : {'a', 'b', 'c'}) {
    bus.on<JobEvent>([&, name](const JobEvent& event) {
      {
        const std::lock_guard lock(mutex);
        runs[event.number] += name;
      }
      Meeting().meet(2, 1ms);
      const std::lock_guard lock(mutex);
      runs[event.number] += name;
    });
  }
  std::vector<BaseEvent> events;
  for (int i = 0; i < 10; ++i) events.push_back(bus.emit(JobEvent{i}));
  for (const BaseEvent& event : events) event.wait();
  REQUIRE(runs.size() == 10);
  for (const auto& [number, run] : runs) CHECK(run == "aabbcc");
}

TEST_CASE("there is no cap on parallel events", "[Q-10]") {
  constexpr int count = 64;
  Meeting meeting;
  EventBus bus("ManyParallelEvents");
  bus.on<JobEvent>([&](const JobEvent&) { return meeting.meet(count); });
  std::vector<BaseEvent> events;
  for (int i = 0; i < count; ++i) events.push_back(bus.emit(JobEvent{i}, {.event_concurrency = parallel}));
  for (const BaseEvent& event : events) event.wait();
  CHECK(meeting.max() == count);
}

TEST_CASE("there is no cap on parallel handlers", "[Q-10]") {
  constexpr int count = 64;
  Meeting meeting;
  EventBus bus("ManyParallelHandlers", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  for (int i = 0; i < count; ++i) bus.on<JobEvent>([&](const JobEvent&) { return meeting.meet(count); });
  bus.emit(JobEvent{1}).wait();
  CHECK(meeting.max() == count);
}

TEST_CASE("the history is listed by status, in history order", "[Q-11]") {
  Gate gate;
  EventBus bus("ListsByStatus");
  const OpenAtExit open(gate);
  bus.on<StopEvent>([&](const StopEvent&) { gate.wait(); });
  const auto done1 = bus.emit(JobEvent{1});
  const auto done2 = bus.emit(JobEvent{2});
  done2.wait();
  const auto running = bus.emit(StopEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued1 = bus.emit(JobEvent{3});
  const auto aside = bus.emit(StopEvent{}, {.event_concurrency = parallel});
  const auto queued2 = bus.emit(JobEvent{4});
  const auto done3 = bus.emit(JobEvent{5}, {.event_concurrency = parallel});
  const auto queued3 = bus.emit(JobEvent{6});
  done3.wait();
  REQUIRE(gate.wait_for_arrivals(2));

  using Events = std::vector<BaseEvent>;
  CHECK(bus.events_completed() == Events{done1, done2, done3});
  CHECK(bus.events_started() == Events{running, aside});
  CHECK(bus.events_pending() == Events{queued1, queued2, queued3});
  CHECK(bus.pending_event_queue() == std::vector<Uuid>{queued1.event_id(), queued2.event_id(), queued3.event_id()});

  gate.open();
  CHECK(bus.wait_until_idle());
  CHECK(bus.events_completed() == Events{done1, done2, running, queued1, aside, queued2, done3, queued3});
  CHECK(bus.events_started().empty());
  CHECK(bus.events_pending().empty());
  CHECK(bus.pending_event_queue().empty());
}

}  // namespace

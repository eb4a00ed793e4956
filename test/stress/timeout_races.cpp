// Deadlines racing with handlers that return just then.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Race {
  int microseconds = 0;
  int number = 0;
};

/// Neither sleeps nor stops early, so that it ends as close to the deadline as wanted.
void busy(int microseconds) {
  const auto end = Clock::now() + std::chrono::microseconds(microseconds);
  while (Clock::now() < end) std::this_thread::yield();
}

/// Sleeps for the coarse part: for many at once on few cores.
void pause(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

/// One state of a result as a reader sees it.
struct Seen {
  EventResultStatus status;
  std::string error;
  std::optional<int> value;
  bool completed_at;

  friend bool operator==(const Seen&, const Seen&) = default;
};

bool terminal(EventResultStatus status) {
  return status == EventResultStatus::completed || status == EventResultStatus::error;
}

/// The status is read first: a terminal one promises that the rest is there.
Seen look_at(const EventResult& result) {
  Seen seen{};
  seen.status = result.status();
  seen.error = result.error_type();
  seen.value = result.result_as<int>();
  seen.completed_at = result.completed_at().has_value();
  return seen;
}

/// Whether a terminal state is whole: a value and no error, or one of the expected errors and no value.
bool consistent(const Seen& seen, const Race& race, std::initializer_list<std::string_view> errors) {
  if (!seen.completed_at) return false;
  if (seen.status == EventResultStatus::completed)
    return seen.error.empty() && seen.value == std::optional(race.number);
  for (const auto error : errors)
    if (seen.error == error) return !seen.value.has_value();
  return false;
}

TEST_CASE("a handler that returns at its deadline has one outcome, and keeps it",
          "[stress][T-TMO-34][T-LATE-1][T-TMO-23][S-MT-1]") {
  Watchdog watchdog("handler deadlines");
  const QuietLog quiet;
  EventBus bus("StressDeadline", {.event_concurrency = EventConcurrency::parallel, .max_history_size = 0});
  std::atomic<int> stopped_but_kept{0};
  std::vector<std::atomic<int>> stop_seen(8);
  bus.on<Race>(
      [&](const Event<Race>& event, std::stop_token stop) {
        if (event->microseconds < 0)
          pause(-event->microseconds);
        else
          busy(event->microseconds);
        stop_seen[static_cast<std::size_t>(event->number)] = stop.stop_requested() ? 1 : 0;
        return event->number;
      },
      {.handler_timeout = 1ms});
  std::minstd_rand random(1);
  int torn = 0;
  int changed = 0;
  int timed_out = 0;
  int returned = 0;
  const int rounds = scaled(4000, 100);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Event<Race>> events;
    for (auto& each : stop_seen) each = -1;
    for (int i = 0; i < 3; ++i) {
      const int microseconds = 900 + static_cast<int>(random() % 200);
      events.push_back(bus.emit(Race{i == 0 ? microseconds : -microseconds, i}));
    }
    std::vector<Seen> first;
    for (const auto& event : events) {
      event.wait();
      const EventResults results = event.event_results();
      first.push_back(look_at(results[0]));
      if (results.size() != 1 || !consistent(first.back(), *event, {"EventHandlerTimeoutError"})) ++torn;
      if (*results[0].started_at() > *results[0].completed_at()) ++torn;
      if (event.event_status() != EventStatus::completed || !event.event_completed_at()) ++torn;
      ++(first.back().status == EventResultStatus::completed ? returned : timed_out);
    }
    // The handler's own end comes later when it lost; nothing may change then.
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!eventually([&] { return stop_seen[i] >= 0; })) ++torn;
      const Seen after = look_at(events[i].event_results()[0]);
      if (!(after == first[i])) ++changed;
      if (stop_seen[i] == 1 && after.status == EventResultStatus::completed) ++stopped_but_kept;
    }
    watchdog.alive();
  }
  CHECK(torn == 0);
  CHECK(changed == 0);
  CHECK(stopped_but_kept == 0);
  CHECK(returned + timed_out == 3 * rounds);
  INFO("returned " << returned << ", timed out " << timed_out);
  CHECK(timed_out > 0);
}

TEST_CASE("a reader never sees a result half settled", "[stress][S-MT-1][T-TMO-34]") {
  Watchdog watchdog("half settled");
  const QuietLog quiet;
  EventBus bus("StressReader", {.max_history_size = 0});
  bus.on<Race>(
      [](const Race& race) {
        busy(race.microseconds);
        return race.number;
      },
      {.handler_timeout = 1ms});
  std::minstd_rand random(2);
  std::atomic<int> torn{0};
  std::atomic<int> backwards{0};
  const int rounds = scaled(3000, 100);
  for (int round = 0; round < rounds; ++round) {
    const auto event = bus.emit(Race{900 + static_cast<int>(random() % 200), round});
    std::optional<Seen> last;
    while (!last || !terminal(last->status)) {
      const EventResults results = event.event_results();
      if (results.empty()) {
        std::this_thread::yield();
        continue;
      }
      const Seen now = look_at(results[0]);
      if (terminal(now.status) && !consistent(now, *event, {"EventHandlerTimeoutError"})) ++torn;
      if (last && now.status < last->status) ++backwards;
      last = now;
    }
    event.wait();
    if (!(look_at(event.event_results()[0]) == *last)) ++torn;
    watchdog.alive();
  }
  CHECK(torn == 0);
  CHECK(backwards == 0);
}

TEST_CASE("an event's deadline cuts its serial handlers in one place", "[stress][T-TMO-24][T-TMO-25][T-TMO-34]") {
  Watchdog watchdog("event deadlines");
  const QuietLog quiet;
  EventBus bus("StressEventDeadline", {.event_timeout = 1ms, .max_history_size = 0});
  for (int h = 0; h < 4; ++h) {
    bus.on<Race>([](const Race& race) {
      busy(race.microseconds / 4);
      return race.number;
    });
  }
  std::minstd_rand random(3);
  int wrong = 0;
  int cut = 0;
  const int rounds = scaled(3000, 100);
  for (int round = 0; round < rounds; ++round) {
    // Now and then far beyond the deadline, so that some are cut however late a busy machine lets the watchdog look.
    const auto event = bus.emit(Race{round % 16 == 0 ? 6000 : 800 + static_cast<int>(random() % 400), round});
    event.wait();
    // completed..., then at most one aborted, then cancelled ones only.
    int stage = 0;
    std::vector<Seen> first;
    for (const auto& result : event.event_results()) {
      const Seen seen = look_at(result);
      first.push_back(seen);
      if (!consistent(seen, *event, {"EventHandlerAbortedError", "EventHandlerCancelledError"})) ++wrong;
      const int now = seen.status == EventResultStatus::completed ? 0
                      : seen.error == "EventHandlerAbortedError"  ? 1
                                                                  : 2;
      if (now < stage || (now == 1 && stage == 1)) ++wrong;
      stage = now;
    }
    if (first.size() != 4) ++wrong;
    if (stage > 0) ++cut;
    // The next event runs although an aborted handler's code may still be executing.
    const auto next = bus.emit(Race{0, round});
    next.wait();
    std::size_t index = 0;
    for (const auto& result : event.event_results())
      if (!(look_at(result) == first[index++])) ++wrong;
    watchdog.alive();
  }
  CHECK(wrong == 0);
  INFO("cut short: " << cut << " of " << rounds);
  CHECK(cut > 0);
}

TEST_CASE("a caller's timeout races with completion", "[stress][T-TMO-35][S-JMP-5]") {
  Watchdog watchdog("caller timeouts");
  EventBus bus("StressCaller", {.max_history_size = 0});
  bus.on<Race>([](const Race& race) {
    busy(race.microseconds);
    return race.number;
  });
  std::minstd_rand random(4);
  int wrong = 0;
  const int rounds = scaled(3000, 100);
  for (int round = 0; round < rounds; ++round) {
    const auto event = bus.emit(Race{900 + static_cast<int>(random() % 200), round});
    try {
      if (round % 2 == 0)
        event.now({.timeout = 1ms});
      else
        event.wait({.timeout = 1ms});
      if (event.event_status() != EventStatus::completed) ++wrong;
    } catch (const TimeoutError&) {
    }
    event.wait();
    const EventResults results = event.event_results();
    if (results.size() != 1 || results[0].result_as<int>() != std::optional(round)) ++wrong;
    watchdog.alive();
  }
  CHECK(wrong == 0);
}

}  // namespace

// The history's limit under concurrent emits.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Ping {
  int number = 0;
};

TEST_CASE("in reject mode the limit is never exceeded, and rejected events leave no trace",
          "[stress][H-HIST-14][H-HIST-11]") {
  Watchdog watchdog("reject mode");
  constexpr std::size_t limit = 64;
  EventBus bus("StressReject", {.max_history_size = limit});
  std::atomic<int> handled{0};
  bus.on<Ping>([&](const Ping&) { ++handled; });
  const int each = scaled(100000, 2000);
  std::atomic<int> accepted{0};
  std::atomic<int> rejected{0};
  std::atomic<int> traces{0};
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> largest{0};
  std::atomic<int> removed{0};
  std::vector<std::thread> emitters;
  for (int t = 0; t < 4; ++t) {
    emitters.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const auto event = make_event(Ping{i});
        try {
          bus.emit(event);
          ++accepted;
        } catch (const EventBusHistoryLimitError&) {
          ++rejected;
          if (!event.event_path().empty() || event.event_pending_bus_count() != 0) ++traces;
        }
      }
    });
  }
  std::thread remover([&] {
    EventHistory history = bus.event_history();
    while (!stop) {
      const std::vector<BaseEvent> events = history.events();
      largest = std::max(largest.load(), events.size());
      largest = std::max(largest.load(), history.size());
      // Some of them, one by one; those that are not handled yet are handled all the same.
      for (std::size_t i = 0; i < events.size() / 2; ++i)
        if (history.remove_event(events[i].event_id())) ++removed;
      std::this_thread::yield();
    }
  });
  for (auto& thread : emitters) thread.join();
  stop = true;
  remover.join();
  REQUIRE(bus.wait_until_idle());
  CHECK(largest <= limit);
  CHECK(traces == 0);
  CHECK(accepted + rejected == 4 * each);
  CHECK(handled == accepted);
  CHECK(bus.event_history().size() == static_cast<std::size_t>(accepted - removed));
}

TEST_CASE("in drop mode the history stays within its bound", "[stress][H-HIST-17][H-HIST-15]") {
  Watchdog watchdog("drop mode");
  const QuietLog quiet;
  constexpr std::size_t limit = 100;
  EventBus bus("StressDrop", {.max_history_size = limit, .max_history_drop = true});
  std::atomic<int> handled{0};
  bus.on<Ping>([&](const Ping&) { ++handled; });
  const int each = scaled(200000, 2000);
  std::atomic<std::size_t> largest{0};
  std::vector<std::thread> emitters;
  for (int t = 0; t < 4; ++t) {
    emitters.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        bus.emit(Ping{i});
        if (i % 16 == 0) {
          const std::size_t size = bus.event_history().size();
          std::size_t before = largest;
          while (size > before && !largest.compare_exchange_weak(before, size)) {
          }
        }
      }
    });
  }
  for (auto& thread : emitters) thread.join();
  REQUIRE(bus.wait_until_idle());
  // Each of the other three emitters may have accepted one event that it has not trimmed for yet.
  CHECK(largest <= limit + limit / 5 + 3);
  CHECK(bus.event_history().size() <= limit);
  CHECK(handled == 4 * each);
}

TEST_CASE("without history everything that completed is gone", "[stress][H-HIST-21][H-HIST-23]") {
  Watchdog watchdog("zero mode");
  EventBus bus("StressZero", {.max_history_size = 0});
  bus.on<Ping>([](const Ping&) {});
  const int each = scaled(50000, 500);
  std::atomic<int> present{0};
  std::vector<std::thread> emitters;
  for (int t = 0; t < 4; ++t) {
    emitters.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const auto event = bus.emit(Ping{i});
        if (t % 2 == 0)
          event.now();
        else
          event.wait();
        if (bus.event_history().has_event(event.event_id())) ++present;
      }
    });
  }
  for (auto& thread : emitters) thread.join();
  REQUIRE(bus.wait_until_idle());
  CHECK(present == 0);
  CHECK(bus.event_history().size() == 0);
}

TEST_CASE("a find racing with emits misses nothing and reports nothing twice", "[stress][H-FIND-18][H-FIND-19]") {
  Watchdog watchdog("find hand-over");
  EventBus bus("StressFind", {.max_history_size = 200, .max_history_drop = true});
  const int rounds = scaled(20000, 500);
  std::atomic<int> missed{0};
  std::atomic<int> twice{0};
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        ++arrived;
        while (arrived < 3 * (i + 1)) std::this_thread::yield();
        if (t == 0) {
          bus.emit(Ping{i});
          continue;
        }
        std::atomic<int> matches{0};
        const auto found = bus.find<Ping>({.past = true, .future = true, .where = [&](const Event<Ping>& ping) {
                                             if (ping->number != i) return false;
                                             ++matches;
                                             return true;
                                           }});
        if (!found) ++missed;
        if (matches != 1) ++twice;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(missed == 0);
  CHECK(twice == 0);
  CHECK(bus.find_waiter_count() == 0);
}

}  // namespace

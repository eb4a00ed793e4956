// Very many handlers on one key, and churn among them. The full million is in the stress tests.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Ping {
  int number = 0;
};

TEST_CASE("fifty thousand handlers on one key: one in the middle is removed at once, the others stay in order",
          "[S-REG-11][S-REG-4]") {
  constexpr int count = 50000;
  EventBus bus("ManyHandlers", {.max_history_size = 0, .warn_on_duplicate_handler_names = false});
  std::vector<int> calls;
  calls.reserve(count);
  std::vector<EventHandler> handlers;
  handlers.reserve(count);
  for (int i = 0; i < count; ++i) handlers.push_back(bus.on<Ping>([&calls, i](const Ping&) { calls.push_back(i); }));
  REQUIRE(bus.handler_count() == count);

  const auto start = Clock::now();
  bus.off(handlers[count / 2]);
  CHECK(seconds_since(start) < 1.0);
  CHECK(bus.handler_count() == count - 1);
  settled(bus.emit(Ping{}));
  REQUIRE(calls.size() == count - 1);
  int wrong = 0;
  for (int i = 0; i < count - 1; ++i)
    if (calls[static_cast<std::size_t>(i)] != (i < count / 2 ? i : i + 1)) ++wrong;
  CHECK(wrong == 0);
}

TEST_CASE("removing one handler costs no more among many than among few", "[S-REG-11]") {
  const auto seconds_for_churn = [](std::string name, int others) {
    EventBus bus(name, {.warn_on_duplicate_handler_names = false});
    for (int i = 0; i < others; ++i) bus.on<Ping>([](const Ping&) {});
    const auto start = Clock::now();
    for (int i = 0; i < 2000; ++i) bus.off(bus.on<Ping>([](const Ping&) {}));
    const double seconds = seconds_since(start);
    return bus.handler_count() == static_cast<std::size_t>(others) ? seconds : 1e9;
  };
  const double few = seconds_for_churn("ChurnFew", 10);
  const double many = seconds_for_churn("ChurnMany", 50000);
  // A linear scan would be thousands of times slower; a noisy machine is not.
  CHECK(many < 50 * few + 1.0);
}

TEST_CASE("handlers removed in any order leave the others in place", "[S-REG-12][S-REG-4]") {
  EventBus bus("RemoveAnyOrder", {.warn_on_duplicate_handler_names = false});
  std::vector<int> calls;
  std::vector<EventHandler> handlers;
  for (int i = 0; i < 1000; ++i) handlers.push_back(bus.on<Ping>([&calls, i](const Ping&) { calls.push_back(i); }));
  std::vector<int> expected;
  for (int i = 0; i < 1000; ++i) {
    if (i * 7919 % 10 < 6)
      bus.off(handlers[static_cast<std::size_t>(i)]);
    else
      expected.push_back(i);
  }
  settled(bus.emit(Ping{}));
  CHECK(calls == expected);
  bus.off<Ping>();
  CHECK(bus.handler_count() == 0);
  CHECK(bus.handlers_by_key().empty());
}

TEST_CASE("register, emit, now, unregister from several threads runs every handler once", "[S-MT-12]") {
  constexpr int threads = 4;
  constexpr int rounds = 300;
  EventBus bus("ManyChurn", {.max_history_size = 50, .max_history_drop = true});
  std::atomic<int> wrong{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const std::string key = "Churn" + std::to_string(t);
      for (int i = 0; i < rounds; ++i) {
        std::atomic<int> calls{0};
        const EventHandler handler = bus.on(key, [&](const BaseEvent&) { ++calls; });
        bus.emit(BaseEvent::make(key)).now();
        bus.off(handler);
        if (calls != 1) ++wrong;
      }
    });
  }
  for (auto& worker : workers) worker.join();
  CHECK(wrong == 0);
  CHECK(bus.handler_count() == 0);
}

}  // namespace

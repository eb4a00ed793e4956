// on and off while events are dispatched, from several threads.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Work {
  int number = 0;
};

EventBusOptions unlimited() {
  return {.max_history_size = std::nullopt};
}

}  // namespace

TEST_CASE("register, emit, now, unregister: once per emit", "[S-MT-12]") {
  constexpr int threads = 3;
  constexpr int rounds = 150;
  std::atomic<int> wrong = 0;
  EventBus bus("MtChurn", unlimited());
  {
    std::vector<std::unique_ptr<Caller>> callers;
    for (int thread = 0; thread < threads; ++thread)
      callers.push_back(std::make_unique<Caller>([&, thread] {
        const std::string type = "Churn" + std::to_string(thread);
        for (int round = 0; round < rounds; ++round) {
          const auto calls = std::make_shared<std::atomic<int>>(0);
          const EventHandler handler = bus.on(type, [calls](BaseEvent) { ++*calls; });
          auto event = bus.emit(Work{round}, {.event_type = type}).now();
          if (*calls != 1 || event.event_results().size() != 1) ++wrong;
          bus.off(type, handler);
          bus.emit(Work{round}, {.event_type = type}).now();
          if (*calls != 1) ++wrong;
        }
      }));
  }
  REQUIRE(wrong == 0);
  REQUIRE(bus.handlers().empty());
  REQUIRE(bus.handlers_by_key().empty());
}

TEST_CASE("churn on one key: each run sees one snapshot", "[S-MT-12]") {
  constexpr int events = 400;
  std::atomic<bool> going = true;
  std::atomic<int> lasting_calls = 0;
  std::atomic<int> passing_calls = 0;
  int results = 0;
  EventBus bus("MtChurnKey", unlimited());
  bus.on<Work>([&](const Work&) { ++lasting_calls; });
  {
    const auto churn = [&] {
      while (going) {
        const ScopedHandler typed(bus, bus.on<Work>([&](const Work&) { ++passing_calls; }));
        const ScopedHandler any(bus, bus.on("*", [&](BaseEvent) -> abxbus::task<> {
          ++passing_calls;
          co_return;
        }));
      }
    };
    Caller first(churn);
    Caller second(churn);
    for (int i = 0; i < events; ++i) {
      auto event = bus.emit(Work{i});
      if (i % 4 == 0) event.now();
    }
    bus.wait_until_idle();
    going = false;
  }
  REQUIRE(lasting_calls == events);
  for (const BaseEvent& event : bus.event_history().events()) results += static_cast<int>(event.event_results().size());
  REQUIRE(results == events + passing_calls);
  REQUIRE(bus.handlers().size() == 1);
}

TEST_CASE("on, off, emit and destroy at once", "[S-MT-12][S-DST-12]") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> unexpected = 0;
    std::atomic<int> accepted = 0;
    EventBus bus("MtChurnDestroy", unlimited());
    const auto until_destroyed = [&](auto step) {
      return [&, step] {
        try {
          for (;;) step();
        } catch (const EventBusDestroyedError&) {
        } catch (...) {
          ++unexpected;
        }
      };
    };
    {
      Caller registrar(until_destroyed([&] { bus.off(bus.on<Work>([](const Work&) {})); }));
      Caller cleaner(until_destroyed([&] { bus.off<Work>(); }));
      Caller emitter(until_destroyed([&] {
        bus.emit(Work{});
        ++accepted;
      }));
      eventually([&] { return accepted > 20; });
      bus.destroy();
    }
    REQUIRE(unexpected == 0);
    REQUIRE(accepted > 20);
    REQUIRE(bus.handlers().empty());
  }
}

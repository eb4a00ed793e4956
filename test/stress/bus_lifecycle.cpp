// Buses that come and go with work in flight.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Work {
  int number = 0;
};
struct Stop {};

std::ptrdiff_t thread_count() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// Symptom elsewhere: shutting down hangs once in a thousand times.
TEST_CASE("ten thousand buses are made, used and destroyed with work in flight",
          "[stress][S-DST-13][S-BUS-16][S-DST-9]") {
  Watchdog watchdog("bus lifecycle", std::chrono::seconds(sanitized ? 120 : 20));
  const int rounds = scaled(10000, 300);
  const Domain domain;
  std::atomic<int> running{0};
  int still_running = 0;
  const std::ptrdiff_t threads_before = thread_count();
  std::ptrdiff_t most_threads = 0;
  for (int i = 0; i < rounds; ++i) {
    {
      EventBus bus("StressLife",
                   {.event_concurrency = i % 5 == 0 ? EventConcurrency::parallel : EventConcurrency::bus_serial,
                    .domain = domain});
      bus.on<Work>([&running, spin = i % 7](const Work& work) {
        ++running;
        for (int n = 0; n < spin; ++n) std::this_thread::yield();
        --running;
        return work.number;
      });
      for (int n = 0; n < 10; ++n) bus.emit(Work{n});
      std::thread other;
      switch (i % 6) {
        case 0:
          bus.destroy();
          break;
        case 1:
          bus.destroy(false);
          break;
        case 2:
          bus.wait_until_idle();
          break;
        case 3:
          other = std::thread([&] { bus.destroy(); });
          break;
        case 4: {
          const EventBusRef reference = bus;
          bus.on<Stop>([reference](const Stop&) { reference.destroy(); });
          bus.emit(Stop{});
          break;
        }
        default:
          break;
      }
      if (other.joinable()) other.join();
    }
    if (running != 0) ++still_running;
    if (i % 64 == 0) most_threads = std::max(most_threads, thread_count());
    watchdog.alive();
  }
  CHECK(still_running == 0);
  CHECK(EventBus::all_instances(domain).empty());
  CHECK(most_threads < threads_before + 100);
  CHECK(eventually([] { return total_live_bytes() == 0; }));
}

TEST_CASE("threads make, forward between and destroy buses of one domain", "[stress][S-BUS-12][S-DST-10][S-DST-12]") {
  Watchdog watchdog("many owners");
  const int rounds = scaled(1000, 30);
  const Domain domain;
  std::atomic<int> lost{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        auto source = std::make_unique<EventBus>("Same", EventBusOptions{.domain = domain});
        EventBus target("Same", {.domain = domain});
        std::atomic<int> handled{0};
        target.on<Work>([&](const Work&) { ++handled; });
        source->on("*", target.forwarder());
        const auto event = source->emit(Work{i});
        if (t % 2 == 0) event.wait();
        source.reset();
        if (t % 2 == 0 && handled != 1) ++lost;
        for (const auto& bus : EventBus::all_instances(domain))
          if (bus.name().empty()) ++lost;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(lost == 0);
  CHECK(EventBus::all_instances(domain).empty());
}

// Symptom elsewhere: the last owner is released on the worker: self-join.
TEST_CASE("the last owner goes inside the bus's own handler, again and again", "[stress][S-DST-13][S-DST-11]") {
  Watchdog watchdog("own handler");
  const int rounds = scaled(3000, 100);
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    auto owner = std::make_shared<EventBus>("StressOwner");
    auto in_handler = std::make_shared<std::shared_ptr<EventBus>>(owner);
    Gate go;
    owner->on<Work>([in_handler, &go](const Work& work) {
      go.wait();
      in_handler->reset();
      return work.number;
    });
    const auto event = owner->emit(Work{i});
    owner.reset();
    go.open();
    in_handler.reset();
    event.wait();
    if (event.event_results().size() != 1 || event.event_results()[0].status() != EventResultStatus::completed) ++wrong;
    watchdog.alive();
  }
  CHECK(wrong == 0);
}

}  // namespace

// Order, loss and duplication under load.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Numbered {
  std::int64_t producer = 0;
  std::int64_t number = 0;
  using event_result_type = std::int64_t;
};

// Symptom elsewhere: elements of two synchronised producers come out in another order.
TEST_CASE("producers that pass a baton keep their order", "[stress][S-MT-2][Q-1]") {
  const Watchdog watchdog("baton");
  const int count = scaled(100000, 2000);
  EventBus bus("StressBaton", {.max_history_size = 64, .max_history_drop = true});
  std::int64_t next = 0;
  int wrong = 0;
  bus.on<Numbered>([&](const Numbered& event) {
    if (event.number != next) ++wrong;
    next = event.number + 1;
  });
  std::atomic<int> turn{0};
  std::vector<std::thread> producers;
  for (int t = 0; t < 2; ++t) {
    producers.emplace_back([&, t] {
      for (int i = t; i < count; i += 2) {
        for (int now = turn.load(std::memory_order_acquire); now != i; now = turn.load(std::memory_order_acquire))
          turn.wait(now, std::memory_order_acquire);
        bus.emit(Numbered{t, i});
        turn.store(i + 1, std::memory_order_release);
        turn.notify_all();
      }
    });
  }
  for (auto& producer : producers) producer.join();
  REQUIRE(bus.wait_until_idle());
  CHECK(wrong == 0);
  CHECK(next == count);
}

/// Emits `total` events from 16 threads in batches, and looks at every event of a batch once its last one is done.
class Producers {
 public:
  static constexpr int producers = 16;
  static constexpr std::int64_t batch = 256;

  explicit Producers(EventBus& bus) : bus_(bus) {
    bus.on<Numbered>([this](const Numbered& event) {
      std::int64_t& expected = next_[static_cast<std::size_t>(event.producer)];
      if (event.number != expected) ++disorder_;
      expected = event.number + 1;
      ++handled_;
      return event.number;
    });
  }
  void run(std::int64_t total) {
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p) threads.emplace_back([this, p, total] { produce(p, total / producers); });
    for (auto& thread : threads) thread.join();
    bus_.wait_until_idle();
    for (auto& each : first_) each += total / producers;
  }
  std::int64_t handled() const { return handled_; }
  std::int64_t disorder() const { return disorder_; }
  int bad_results() const { return bad_results_; }

 private:
  void produce(int producer, std::int64_t count) {
    std::vector<Event<Numbered>> events;
    events.reserve(batch);
    const std::int64_t first = first_[static_cast<std::size_t>(producer)];
    for (std::int64_t i = first; i < first + count; ++i) {
      events.push_back(bus_.emit(Numbered{producer, i}));
      if (events.size() < batch && i + 1 < first + count) continue;
      events.back().wait();
      for (const auto& event : events) {
        const EventResults results = event.event_results();
        if (event.event_status() != EventStatus::completed || results.size() != 1 ||
            results[0].result_as<std::int64_t>() != std::optional(event->number))
          ++bad_results_;
      }
      events.clear();
    }
  }

  EventBus& bus_;
  // Written by the handler of a serial bus only, read when it is idle.
  std::array<std::int64_t, producers> next_{};
  std::array<std::int64_t, producers> first_{};
  std::int64_t handled_ = 0;
  std::int64_t disorder_ = 0;
  std::atomic<int> bad_results_{0};
};

TEST_CASE("sixteen producers: nothing lost, doubled or out of order, memory constant",
          "[stress][S-MT-2][S-HND-6][P-MEM-2]") {
  const Watchdog watchdog("sixteen producers", std::chrono::minutes(8));
  const std::int64_t warm_up = 48000;
  const std::int64_t total = scaled(5000000, 48000) / Producers::producers * Producers::producers;
  EventBus bus("StressProducers", {.max_history_size = 128, .max_history_drop = true});
  Producers producers(bus);
  producers.run(warm_up);
  REQUIRE(eventually([&] { return bus.memory().live_events <= 128; }));
  const std::int64_t before = bus.memory().live_bytes;
  producers.run(total);
  CHECK(producers.handled() == warm_up + total);
  CHECK(producers.disorder() == 0);
  CHECK(producers.bad_results() == 0);
  CHECK(bus.event_history().size() == 128);
  CHECK(eventually([&] { return bus.memory().live_events <= 128; }));
  CHECK(bus.memory().live_bytes <= before + before / 2 + (std::int64_t{64} << 10));
  // At most 16 batches and the history are alive at any time.
  CHECK(bus.memory().peak_bytes < std::int64_t{16} << 20);
}

// Symptom elsewhere: an element is queued, a task starts, and its look into the queue says "empty".
TEST_CASE("eight workers: every event has its result when the bus is idle", "[stress][S-IDLE-6][S-HND-6]") {
  Watchdog watchdog("eight workers");
  const Executor executor({.workers = 8});
  const int rounds = 10;
  const int chunks = scaled(40);
  constexpr int chunk = 10000;
  EventBus bus("StressWorkers",
               {.event_concurrency = EventConcurrency::parallel, .max_history_size = 0, .executor = executor});
  std::atomic<std::int64_t> handled{0};
  bus.on<Numbered>([&](const Numbered& event) {
    handled.fetch_add(1, std::memory_order_relaxed);
    return event.number;
  });
  int without = 0;
  int left = 0;
  std::vector<Event<Numbered>> events;
  for (int i = 0; i < rounds * chunks; ++i) {
    events.clear();
    for (int n = 0; n < chunk; ++n) events.push_back(bus.emit(Numbered{0, n}));
    REQUIRE(bus.wait_until_idle());
    if (!bus.pending_event_queue().empty() || bus.event_history().size() != 0) ++left;
    for (const auto& event : events) {
      const EventResults results = event.event_results();
      if (results.size() != 1 || results[0].status() != EventResultStatus::completed) ++without;
    }
    watchdog.alive();
  }
  CHECK(handled == std::int64_t{rounds} * chunks * chunk);
  CHECK(without == 0);
  CHECK(left == 0);
}

}  // namespace

// Registration, emission, waiting and destruction racing with each other.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Work {
  int number = 0;
};
struct Echo {
  int number = 0;
};

/// A few buses that any thread may use and replace.
class Buses {
 public:
  static constexpr std::size_t count = 3;
  Buses() {
    for (auto& slot : slots_) slot = make();
  }
  std::shared_ptr<EventBus> get(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return slots_[index];
  }
  /// Puts a new bus there; returns the old one.
  std::shared_ptr<EventBus> replace(std::size_t index) {
    auto fresh = make();
    const std::lock_guard lock(mutex_);
    return std::exchange(slots_[index], std::move(fresh));
  }
  int made() const { return made_; }

 private:
  std::shared_ptr<EventBus> make() {
    const int number = ++made_;
    EventBusOptions options;
    options.max_history_size = 32;
    options.max_history_drop = true;
    options.warn_on_duplicate_handler_names = false;
    options.event_concurrency = number % 3 == 0 ? EventConcurrency::parallel : EventConcurrency::bus_serial;
    options.event_handler_concurrency =
        number % 2 == 0 ? EventHandlerConcurrency::parallel : EventHandlerConcurrency::serial;
    return std::make_shared<EventBus>("Churn" + std::to_string(number), options);
  }

  std::mutex mutex_;
  std::atomic<int> made_{0};
  std::array<std::shared_ptr<EventBus>, count> slots_;
};

/// What one thread does, at random, until it is told to stop.
class Actor {
 public:
  Actor(Buses& buses, unsigned seed) : buses_(buses), random_(seed) {}
  int steps = 0;
  int unexpected = 0;
  int incomplete = 0;
  int late = 0;
  std::string first_unexpected;

  void run(const std::atomic<bool>& stop) {
    while (!stop) {
      ++steps;
      try {
        step();
      } catch (const EventBusDestroyedError&) {
      } catch (const TimeoutError&) {
        ++late;
      } catch (const std::exception& error) {
        if (unexpected++ == 0) first_unexpected = error.what();
      }
    }
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  void step() {
    const auto index = static_cast<std::size_t>(below(Buses::count));
    const std::shared_ptr<EventBus> bus = buses_.get(index);
    const int what = below(1000);
    if (what < 200) {
      add_handler(*bus);
    } else if (what < 380) {
      remove_handler();
    } else if (what < 700) {
      bus->emit(Work{what});
    } else if (what < 850) {
      const auto event = bus->emit(Work{what});
      event.now({.timeout = 60s});
      if (event.event_status() != EventStatus::completed) ++incomplete;
    } else if (what < 930) {
      const auto event = bus->emit(Work{what});
      event.wait({.timeout = 60s});
      if (event.event_status() != EventStatus::completed) ++incomplete;
    } else if (what < 950) {
      bus->wait_until_idle(1ms);
    } else if (what < 970) {
      bus->find<Echo>({.past = below(2) == 0, .future = 200us});
    } else if (what < 985) {
      bus->off<Work>();
    } else if (what < 990) {
      bus->handlers_by_key();
      bus->events_started();
      bus->memory();
    } else if (what < 995) {
      bus->destroy(below(2) == 0);
      buses_.replace(index);
    } else {
      buses_.replace(index);
    }
  }

  void add_handler(const EventBus& bus) {
    const EventBusRef reference = bus;
    const int kind = below(5);
    auto payload = std::make_shared<int>(kind);
    EventHandler handler = bus.on<Work>([reference, kind, payload](const Event<Work>& event) {
      if (kind == 0) throw std::runtime_error("wanted");
      if (kind == 1 && event->number % 4 == 0) event.emit(Echo{*payload});
      if (kind == 2 && event->number % 16 == 0) std::this_thread::sleep_for(50us);
      if (kind == 3 && event->number % 8 == 0) reference.off("*");
      return *payload;
    });
    if (handlers_.size() < 20)
      handlers_.emplace_back(reference, std::move(handler));
    else
      reference.off(handler);
  }

  void remove_handler() {
    if (handlers_.empty()) return;
    const auto entry = std::move(handlers_.back());
    handlers_.pop_back();
    entry.first.off(entry.second);
  }

  Buses& buses_;
  std::minstd_rand random_;
  std::vector<std::pair<EventBusRef, EventHandler>> handlers_;
};

// Symptom elsewhere: disconnect and disconnect-all at once deadlock.
TEST_CASE("on, off, emit, now, find and destroy race", "[stress][S-MT-1][S-MT-5][S-DST-12]") {
  Watchdog watchdog("churn", std::chrono::minutes(3));
  const QuietLog quiet;
  {
    Buses buses;
    std::vector<Actor> actors;
    for (unsigned i = 0; i < 6; ++i) actors.emplace_back(buses, i + 1);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (auto& actor : actors) threads.emplace_back([&actor, &stop] { actor.run(stop); });
    std::this_thread::sleep_for(std::chrono::milliseconds(scaled(10000, 1000)));
    stop = true;
    for (auto& thread : threads) thread.join();
    for (const auto& actor : actors) {
      INFO(actor.first_unexpected);
      CHECK(actor.unexpected == 0);
      CHECK(actor.incomplete == 0);
      CHECK(actor.late == 0);
      CHECK(actor.steps > 0);
    }
    CHECK(buses.made() > static_cast<int>(Buses::count));
    for (std::size_t i = 0; i < Buses::count; ++i) CHECK(buses.get(i)->wait_until_idle(60s));
  }
  CHECK(eventually([] { return total_live_bytes() == 0; }));
}

TEST_CASE("handlers come and go while events run, and none runs twice", "[stress][S-REG-13][S-MT-12]") {
  const Watchdog watchdog("snapshots");
  EventBus bus("StressSnapshots", {.max_history_size = 0, .warn_on_duplicate_handler_names = false});
  std::atomic<bool> stop{false};
  std::atomic<int> twice{0};
  std::thread churn([&] {
    while (!stop) {
      auto last = std::make_shared<std::atomic<int>>(-1);
      const EventHandler handler = bus.on<Work>([last, &twice](const Work& work) {
        if (last->exchange(work.number) == work.number) ++twice;
      });
      std::this_thread::yield();
      bus.off(handler);
    }
  });
  std::vector<int> fixed;
  const int count = scaled(200000, 5000);
  fixed.reserve(static_cast<std::size_t>(count));
  bus.on<Work>([&](const Work& work) { fixed.push_back(work.number); });
  for (int i = 0; i < count; ++i) bus.emit(Work{i});
  CHECK(bus.wait_until_idle());
  stop = true;
  churn.join();
  CHECK(twice == 0);
  REQUIRE(fixed.size() == static_cast<std::size_t>(count));
  CHECK(fixed.front() == 0);
  CHECK(fixed.back() == count - 1);
  CHECK(bus.handler_count() == 1);
}

}  // namespace

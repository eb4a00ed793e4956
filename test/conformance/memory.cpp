// Memory figures: the counters of a bus and of the process, and that nothing is left.

#include "support/catch.hpp"
#include "support/history.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Reading {
  std::int64_t value = 0;
  std::int64_t batch = 0;
  using event_result_type = std::int64_t;
};
static_assert(sizeof(Reading) == 16);
struct Text {
  std::string text;
};
struct Held {};
struct Big {
  Big() {}
  std::array<std::int64_t, 512> numbers = {};
};

TEST_CASE("an unused bus has no events and a plain snapshot", "[P-MEM-2]") {
  const EventBus bus("MemoryUnused");
  const MemoryUse use = bus.memory();
  CHECK(use.live_events == 0);
  CHECK(use.live_bytes >= 0);
  CHECK(use.peak_bytes >= use.live_bytes);
  CHECK(use.bytes_per_event == 0);
}

TEST_CASE("live events follow the history and the handles", "[P-MEM-2]") {
  EventBus bus("MemoryLive", {.max_history_size = std::nullopt});
  bus.on<Reading>([](const Reading& reading) { return reading.value; });
  std::optional<Event<Reading>> kept;
  for (int i = 0; i < 1000; ++i) kept = bus.emit(Reading{i, 0});
  REQUIRE(bus.wait_until_idle(patience));
  const MemoryUse full = bus.memory();
  CHECK(full.live_events == 1000);
  CHECK(full.live_bytes > 1000 * 16);
  CHECK(full.peak_bytes >= full.live_bytes);
  CHECK(std::abs(full.bytes_per_event - static_cast<double>(full.live_bytes) / 1000) < 1e-6);

  bus.event_history().clear();
  CHECK(eventually([&] { return bus.memory().live_events == 1; }));
  CHECK(bus.memory().live_bytes < full.live_bytes / 2);
  CHECK(bus.memory().peak_bytes >= full.live_bytes);
  kept.reset();
  CHECK(eventually([&] { return bus.memory().live_events == 0; }));
}

TEST_CASE("a small event with one result costs at most 384 bytes", "[P-MEM-2]") {
  constexpr int count = 20000;
  EventBus bus("MemoryEvent", {.max_history_size = std::nullopt});
  bus.on<Reading>([](const Reading& reading) { return reading.value + reading.batch; });
  for (int i = 0; i < count; ++i) bus.emit(Reading{i, i % 17});
  REQUIRE(bus.wait_until_idle(patience));
  const MemoryUse use = bus.memory();
  REQUIRE(use.live_events == count);
  CHECK(use.bytes_per_event <= 384);
  CHECK(use.bytes_per_event >= 16);
  CHECK(bus.find<Reading>()->event_results()[0].result_as<std::int64_t>() ==
        std::optional<std::int64_t>(count - 1 + (count - 1) % 17));
}

TEST_CASE("a further handler result costs at most 96 bytes", "[P-MEM-2]") {
  const auto bytes_per_event = [](std::string name, int handlers) {
    EventBus bus(name, {.max_history_size = std::nullopt, .warn_on_duplicate_handler_names = false});
    for (int i = 0; i < handlers; ++i) bus.on<Reading>([](const Reading& reading) { return reading.value; });
    for (int i = 0; i < 20; ++i) bus.emit(Reading{i, 0});
    return bus.wait_until_idle(patience) && bus.memory().live_events == 20 ? bus.memory().bytes_per_event : -1.0;
  };
  const double few = bytes_per_event("MemoryFewHandlers", 100);
  const double many = bytes_per_event("MemoryManyHandlers", 1100);
  REQUIRE(few > 0);
  REQUIRE(many > few);
  CHECK((many - few) / 1000 <= 96);
}

TEST_CASE("payloads and results held out of line are counted", "[P-MEM-2]") {
  EventBus bus("MemoryBig", {.max_history_size = std::nullopt});
  for (int i = 0; i < 50; ++i) bus.emit(Big{});
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(bus.memory().bytes_per_event >= 4096);
}

TEST_CASE("the figures can be read at any time from any thread", "[P-MEM-2]") {
  EventBus bus("MemoryThreads", {.max_history_size = 20, .max_history_drop = true});
  bus.on<Text>([](const Text& text) { return text.text; });
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const MemoryUse use = bus.memory();
        if (use.live_events < 0 || use.live_bytes < 0 || use.peak_bytes < use.live_bytes) ++wrong;
        process_memory();
        ++reads;
      }
    });
  }
  const auto start = Clock::now();
  for (int i = 0; i < 10 || (reads < 100 && Clock::now() - start < patience); ++i) {
    for (int n = 0; n < 500; ++n)
      bus.emit(Text{"a text that is too long to be stored in place, so that it takes memory of its own"});
    bus.wait_until_idle(patience);
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  CHECK(wrong == 0);
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(bus.memory().live_events <= 20);
}

TEST_CASE("reading the figures is cheap", "[P-MEM-2]") {
  EventBus bus("MemoryCheap");
  settled(bus.emit(Reading{}));
  std::int64_t sum = 0;
  const auto start = Clock::now();
  for (int i = 0; i < 10000; ++i) sum += bus.memory().live_events;
  CHECK(seconds_since(start) < 1.1);
  CHECK(sum == 10000);
}

TEST_CASE("the process figures are consistent", "[P-MEM-2]") {
  const ProcessMemory memory = process_memory();
  CHECK(memory.peak_resident_bytes >= memory.resident_bytes);
  CHECK(memory.peak_committed_bytes >= memory.committed_bytes);
}

TEST_CASE("nothing is left after the last bus and the last handle", "[P-MEM-3]") {
  {
    EventBus one("MemoryNothingOne", {.max_history_size = 10, .max_history_drop = true});
    EventBus two("MemoryNothingTwo");
    one.on("*", two.forwarder());
    one.on<Text>([](const Text& text) { return text.text + text.text; });
    two.on<Text>([](Event<Text> event) -> task<int> {
      auto child = event.emit(Reading{1, 2});
      co_await child.now_async();
      co_return 1;
    });
    two.on<Reading>([](const Reading&) -> std::int64_t { throw std::runtime_error("an error is stored, too"); });
    for (int i = 0; i < 20; ++i) settled(one.emit(Text{std::string(200, 'x')}));
    CHECK(total_live_bytes() > 0);
  }
  CHECK(eventually([] { return total_live_bytes() == 0; }));
}

TEST_CASE("an event outlives its bus, and counts until its last handle is gone", "[P-MEM-3]") {
  std::optional<Event<Text>> kept;
  std::optional<EventHandler> entry;
  {
    EventBus bus("MemoryOutlived");
    entry = bus.on<Text>([](const Text& text) { return text.text; });
    kept = settled(bus.emit(Text{std::string(500, 'y')}));
  }
  CHECK(total_live_bytes() > 0);
  CHECK((*kept)->text.size() == 500);
  CHECK(kept->event_results()[0].result_as<std::string>() == std::optional(std::string(500, 'y')));
  kept.reset();
  entry.reset();
  CHECK(eventually([] { return total_live_bytes() == 0; }));
}

TEST_CASE("an event counts for the bus that accepts it, and until then for none", "[P-MEM-3]") {
  REQUIRE(eventually([] { return total_live_bytes() == 0; }));
  auto event = std::make_unique<Event<Reading>>(make_event(Reading{}));
  CHECK(total_live_bytes() == 0);
  {
    EventBus bus("MemoryAccepts");
    settled(bus.emit(*event));
    CHECK(bus.memory().live_events == 1);
  }
  CHECK(total_live_bytes() >= 16);
  event.reset();
  CHECK(eventually([] { return total_live_bytes() == 0; }));
}

TEST_CASE("events that were queued when their bus ended leave nothing", "[P-MEM-3]") {
  {
    Gate gate;
    EventBus bus("MemoryQueued", {.max_history_size = std::nullopt});
    const OpenAtExit opener(gate);
    bus.on<Held>([&](const Held&) { gate.wait(); });
    for (int i = 0; i < 200; ++i) bus.emit(Held{});
    REQUIRE(gate.wait_for_arrivals(1));
    bus.destroy();
  }
  CHECK(eventually([] { return total_live_bytes() == 0; }));
}

}  // namespace

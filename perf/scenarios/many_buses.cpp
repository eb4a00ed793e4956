#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace abxbus::perf {

struct ShortLivedEvent {
  std::int64_t value = 0;
};

namespace {

constexpr int bus_count = 500;
constexpr int events_per_bus = 100;
constexpr std::int64_t event_count = bus_count * events_per_bus;
constexpr std::size_t history_size = 128;

}  // namespace

// P-SCN-2: 500 short lives of a bus, one after another.
Sample many_buses(const Run&) {
  // Atomic: now() may run an event beside the one that a worker is running on the same bus (S-JMP-25).
  std::atomic<std::int64_t> handled{0};
  MemoryUse memory;
  const std::size_t buses_before = live_bus_count();

  const Stopwatch watch;
  for (int life = 0; life < bus_count; ++life) {
    EventBus bus("ShortLived" + std::to_string(life), dropping(history_size));
    bus.on<ShortLivedEvent>([&](const ShortLivedEvent&) { handled.fetch_add(1, std::memory_order_relaxed); });
    std::array<Event<ShortLivedEvent>, events_per_bus> events;
    for (int i = 0; i < events_per_bus; ++i) events[static_cast<std::size_t>(i)] = bus.emit(ShortLivedEvent{i});
    for (const Event<ShortLivedEvent>& event : events) event.now();
    bus.wait_until_idle();
    if (life == bus_count - 1) memory = bus.memory();  // all lives are alike
    trim_to_one(bus);
    bus.destroy();
  }
  const std::int64_t total_ns = watch.elapsed_ns();

  check_equal("events handled", handled.load(), event_count);
  check_equal("buses in the registry", live_bus_count(), buses_before);
  return {.total_ns = total_ns,
          .count = event_count,
          .live_bytes_per_unit = memory.bytes_per_event,
          .peak_bytes_per_unit = static_cast<double>(memory.peak_bytes) / event_count};
}

}  // namespace abxbus::perf

#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <cstdint>

namespace abxbus::perf {

struct OneOffEvent {
  std::int64_t value = 0;
};

namespace {

constexpr std::int64_t event_count = 50'000;

}  // namespace

// P-SCN-4: each event has a handler made for it alone.
Sample one_off_handlers(const Run&) {
  std::int64_t handled = 0;  // one event at a time, and now() orders its handler before us
  EventBus bus("OneOffHandlers", dropping(128));

  const Stopwatch watch;
  for (std::int64_t i = 0; i < event_count; ++i) {
    const EventHandler handler = bus.on<OneOffEvent>([&](const OneOffEvent&) { ++handled; });
    bus.emit(OneOffEvent{i}).now();
    bus.off(handler);
  }
  const std::int64_t total_ns = watch.elapsed_ns();

  const MemoryUse memory = bus.memory();
  check_equal("events handled", handled, event_count);
  check_equal("handlers left", bus.handler_count(), 0);
  return {.total_ns = total_ns,
          .count = event_count,
          .live_bytes_per_unit = memory.bytes_per_event,
          .peak_bytes_per_unit = static_cast<double>(memory.peak_bytes) / event_count};
}

}  // namespace abxbus::perf

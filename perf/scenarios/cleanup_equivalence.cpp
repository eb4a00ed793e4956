#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <cstdint>
#include <string>

namespace abxbus::perf {

struct CleanupEvent {
  std::int64_t value = 0;
};

namespace {

constexpr int bus_count = 80;
constexpr int events_per_bus = 64;
constexpr std::int64_t event_count = 2 * bus_count * events_per_bus;

enum class End { destroy, leave_scope };

void one_life(int index, End end, std::int64_t& handled) {
  EventBus bus("Cleanup" + std::to_string(index), dropping(128));
  bus.on<CleanupEvent>([&handled](const CleanupEvent&) { ++handled; });
  for (int i = 0; i < events_per_bus; ++i) bus.emit(CleanupEvent{i}).now();
  bus.wait_until_idle();
  if (end == End::destroy) bus.destroy();
}

void check_all_gone(const char* way, std::int64_t bytes_before, std::size_t buses_before) {
  const bool gone = eventually([&] { return total_live_bytes() == bytes_before && live_bus_count() == buses_before; });
  check(gone, std::string(way) + " left " + std::to_string(total_live_bytes() - bytes_before) + " bytes and " +
                  std::to_string(live_bus_count() - buses_before) + " buses behind");
}

}  // namespace

// P-SCN-7: destroying a bus and leaving its scope leave equally nothing.
Sample cleanup_equivalence(const Run&) {
  const std::int64_t bytes_before = total_live_bytes();
  const std::size_t buses_before = live_bus_count();
  std::int64_t handled = 0;
  std::int64_t total_ns = 0;
  for (const End end : {End::destroy, End::leave_scope}) {
    const Stopwatch watch;
    for (int i = 0; i < bus_count; ++i) one_life(i, end, handled);
    total_ns += watch.elapsed_ns();
    check_all_gone(end == End::destroy ? "destroying" : "leaving scope", bytes_before, buses_before);
  }
  check_equal("events handled", handled, event_count);
  return {.total_ns = total_ns, .count = event_count};
}

}  // namespace abxbus::perf

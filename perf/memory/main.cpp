// Checks what the library promises about memory beyond the scenarios (P-MEM-2 to P-MEM-4), and prints the figures.

#include "harness/clock.hpp"
#include "harness/machine.hpp"
#include "harness/resident.hpp"
#include "harness/scenario.hpp"
#include "harness/text.hpp"
#include "scenarios/support.hpp"

#include <abxbus/memory.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <thread>

namespace abxbus::perf {

struct MemoryEvent {
  std::int64_t value = 0;
  std::int64_t batch_id = 0;
};

namespace {

constexpr std::int64_t small_run = 10'000;
constexpr std::int64_t burst = 1'000'000;

void report(std::string_view what, const std::string& figure) {
  std::puts(joined({" ", left(what, 52), right(figure, 14)}).c_str());
}

std::string megabytes(std::int64_t bytes) {
  return joined({significant(static_cast<double>(bytes) / 1e6), " MB"});
}

// The shortest mean over a few batches of calls: what a call costs when nothing else takes the core.
template <class Call>
double cost_ns(Call call) {
  constexpr int calls = 200;
  auto best = std::numeric_limits<double>::max();
  for (int batch = 0; batch < 50; ++batch) {
    const Stopwatch watch;
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, static_cast<double>(watch.elapsed_ns()) / calls);
  }
  return best;
}

// P-MEM-2: cheap, and callable while events flow.
void check_inspection() {
  EventBus bus("Inspected", dropping(128));
  bus.on<MemoryEvent>([](const MemoryEvent&) {});
  for (std::int64_t i = 0; i < small_run; ++i) bus.emit(MemoryEvent{.value = i});
  bus.wait_until_idle();
  const double bus_cost = cost_ns([&] { static_cast<void>(bus.memory()); });
  const double process_cost = cost_ns([] { static_cast<void>(process_memory()); });
  report("bus.memory()", duration(bus_cost));
  report("process_memory()", duration(process_cost));

  std::atomic<bool> done{false};
  std::atomic<bool> plausible{true};
  std::thread observer([&] {
    while (!done.load(std::memory_order_relaxed)) {
      const MemoryUse use = bus.memory();
      if (use.live_events < 0 || use.live_bytes < 0 || use.peak_bytes < 0) plausible = false;
    }
  });
  for (std::int64_t i = 0; i < small_run; ++i) bus.emit(MemoryEvent{.value = i});
  bus.wait_until_idle();
  done = true;
  observer.join();

  const MemoryUse use = bus.memory();
  report("live bytes an event", significant(use.bytes_per_event));
  check(plausible, "memory() showed a negative figure while events were flowing");
  check(use.live_events > 0 && use.live_bytes > 0 && use.peak_bytes >= use.live_bytes, "memory() is not plausible");
  check(bus_cost <= 1'000, "bus.memory() costs " + duration(bus_cost));
  check(process_cost <= 5'000, "process_memory() costs " + duration(process_cost));
}

// All events are queued before the first is handled; then they drain.
void run_burst(const EventBus& bus, std::atomic<bool>& gate, std::int64_t events) {
  gate.store(false);
  for (std::int64_t i = 0; i < events; ++i) bus.emit(MemoryEvent{.value = i});
  gate.store(true);
  gate.notify_all();
  bus.wait_until_idle();
}

// P-MEM-4: what a burst took is given back without a call.
void check_burst() {
  std::atomic<bool> gate{true};
  EventBus bus("Burst", dropping(128));
  bus.on<MemoryEvent>([&gate](const MemoryEvent&) { gate.wait(false); });

  run_burst(bus, gate, small_run);
  const std::int64_t small_bytes = resident_bytes().value_or(0);
  report("resident after 10 000 events", megabytes(small_bytes));
  const ResidentGrowth growth;
  run_burst(bus, gate, burst);
  report("resident at the peak of 1 000 000 events", megabytes(small_bytes + growth.peak_bytes().value_or(0)));
  const auto most = static_cast<std::int64_t>(1.2 * static_cast<double>(small_bytes));
  const bool returned = eventually([&] { return resident_bytes().value_or(0) <= most; });
  const std::int64_t after = resident_bytes().value_or(0);
  report("resident after them", megabytes(after));
  collect_memory();
  report("resident after collect_memory()", megabytes(resident_bytes().value_or(0)));
  check(returned, joined({"resident memory is ", megabytes(after), " after the burst, was ", megabytes(small_bytes),
                          " after 10 000 events"}));
}

// P-MEM-3.
void check_nothing_left() {
  check(eventually([] { return total_live_bytes() == 0; }),
        std::to_string(total_live_bytes()) + " bytes are still alive after the last bus");
  report("live bytes at the end", "0");
}

}  // namespace

}  // namespace abxbus::perf

int main() {
  using namespace abxbus::perf;
  if (!is_optimised_build()) std::puts(" (built without optimisation)");
  int failures = 0;
  for (void (*part)() : {&check_inspection, &check_burst, &check_nothing_left}) {
    try {
      part();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "FAILED: %s\n", error.what());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}

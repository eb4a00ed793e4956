#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <abxbus/context.hpp>
#include <abxbus/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace abxbus::perf {

struct ForwardedParent {
  std::int64_t iteration = 0;
};
struct ForwardedChild {
  std::int64_t iteration = 0;
  bool hangs = false;
};
struct ForwardedGrandchild {
  std::int64_t iteration = 0;
};

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t iterations = 500;
constexpr std::int64_t event_count = 3 * iterations;  // parent, child, grandchild
constexpr std::int64_t hangs_every = 20;
constexpr std::int64_t searches_every = 10;
constexpr std::int64_t hanging_children = iterations / hangs_every;
constexpr std::size_t history_size = 128;
constexpr auto child_timeout = 1ms;

/// What the handlers saw. Each member is touched by the handlers of one serial bus, and read after `now()`.
struct Seen {
  std::int64_t parents_on_a = 0;
  std::int64_t parents_on_b = 0;
  std::int64_t timeouts = 0;
  /// Parents emitted on both buses. Without this wait a worker could finish a parent on A before it is emitted on B,
  /// where a completed event is only remembered (S-EMIT-12).
  std::atomic<std::int64_t> emitted_on_both{0};
};

void parent_on_a(const Event<ForwardedParent>& parent, const EventBusRef& bus_c, Seen& seen) {
  ++seen.parents_on_a;
  const std::int64_t iteration = parent->iteration;
  for (std::int64_t both = seen.emitted_on_both.load(); both <= iteration; both = seen.emitted_on_both.load())
    seen.emitted_on_both.wait(both);
  const bool hangs = iteration % hangs_every == 0;
  EventOptions options;
  if (hangs) options.event_timeout = child_timeout;
  const auto child = parent.emit(ForwardedChild{.iteration = iteration, .hangs = hangs}, options);
  bus_c.emit(child);
  try {
    child.now();
  } catch (const TimeoutError&) {
  }
  if (!child.event_errors().empty()) ++seen.timeouts;
}

void child_on_c(const Event<ForwardedChild>& child, const EventBusRef& bus_c) {
  const auto grandchild = child.emit(ForwardedGrandchild{child->iteration});
  bus_c.emit(grandchild);
  if (child->hangs) this_handler::sleep_for(200ms);  // cut short at 1 ms; longer than a busy machine is late
  grandchild.now();
}

void check_history(const EventBus& bus) {
  const std::size_t size = bus.event_history().size();
  check(size <= history_size, "history of " + bus.name() + " has " + std::to_string(size) + " entries");
}

}  // namespace

// P-SCN-5: three buses, forwarding, lineage, one-off handlers, searches, and a timeout in every 20th iteration.
Sample forwarding_timeouts(const Run&) {
  Seen seen;
  std::int64_t total_ns = 0;
  double live_bytes = 0;
  std::int64_t peak_bytes = 0;
  const std::size_t buses_before = live_bus_count();
  {
    EventBus bus_a("WorstCaseA", dropping(history_size));
    EventBus bus_b("WorstCaseB", dropping(history_size));
    EventBus bus_c("WorstCaseC", dropping(history_size));
    const EventBusRef c = bus_c;
    bus_b.on<ForwardedParent>([&](const ForwardedParent&) { ++seen.parents_on_b; });
    bus_c.on<ForwardedChild>([c](Event<ForwardedChild> child) { child_on_c(child, c); });
    bus_c.on<ForwardedGrandchild>([](const ForwardedGrandchild&) {});

    const Stopwatch watch;
    for (std::int64_t i = 0; i < iterations; ++i) {
      const EventHandler one_off =
          bus_a.on<ForwardedParent>([&seen, &c](Event<ForwardedParent> parent) { parent_on_a(parent, c, seen); });
      if (i % searches_every == 0) static_cast<void>(bus_a.find_async<ForwardedParent>({.past = false, .future = 1ms}));
      const auto parent = bus_a.emit(ForwardedParent{i});
      bus_b.emit(parent);
      seen.emitted_on_both.store(i + 1);
      seen.emitted_on_both.notify_one();
      parent.now();
      bus_a.off(one_off);
    }
    for (const EventBus* bus : {&bus_a, &bus_b, &bus_c}) bus->wait_until_idle();
    total_ns = watch.elapsed_ns();

    for (const EventBus* bus : {&bus_a, &bus_b, &bus_c}) {
      check_history(*bus);
      const MemoryUse memory = bus->memory();
      live_bytes += memory.bytes_per_event / 3;
      peak_bytes += memory.peak_bytes;
    }
    check_equal("handlers left on A", bus_a.handler_count(), 0);
    for (EventBus* bus : {&bus_a, &bus_b, &bus_c}) bus->destroy();
  }
  check_equal("parents handled on A", seen.parents_on_a, iterations);
  check_equal("parents handled on B", seen.parents_on_b, iterations);
  check_equal("timeouts seen", seen.timeouts, hanging_children);
  check_equal("buses in the registry", live_bus_count(), buses_before);

  const double sleep_ns = static_cast<double>(std::chrono::nanoseconds(child_timeout).count() * hanging_children);
  const double floor = sleep_ns / event_count;
  return {.total_ns = total_ns,
          .count = event_count,
          .live_bytes_per_unit = live_bytes,
          .peak_bytes_per_unit = static_cast<double>(peak_bytes) / event_count,
          .extra = {{"", "sleep_floor_ns_per_unit", floor},
                    {"", "above_floor_ns_per_unit", static_cast<double>(total_ns) / event_count - floor}}};
}

}  // namespace abxbus::perf

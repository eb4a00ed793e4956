#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <abxbus/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <vector>

namespace abxbus::perf {

struct TimedParent {
  std::int64_t iteration = 0;
};
struct TimedChild {
  std::int64_t iteration = 0;
};

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t parent_count = 2'000;
constexpr std::int64_t batch_size = 128;
constexpr std::int64_t hangs_every = 20;
constexpr std::int64_t hanging_children = parent_count / hangs_every;
constexpr auto child_timeout = 1ms;

bool hangs(std::int64_t iteration) {
  return iteration % hangs_every == 0;
}

struct Seen {
  // Atomic: now() may run one parent beside another that a worker is running (S-JMP-25).
  std::atomic<std::int64_t> parents{0};
  std::atomic<std::int64_t> timeouts{0};
  std::atomic<std::int64_t> late_children{0};  ///< ordinary ones that the machine kept from running for a millisecond
  std::atomic<std::int64_t> children{0};
};

void wait_until_stopped(std::stop_token stop, std::chrono::milliseconds limit) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, limit, [] { return false; });
}

void handle_parent(const TimedParent& parent, const EventBusRef& child_bus, Seen& seen) {
  ++seen.parents;
  const auto child = child_bus.emit(TimedChild{parent.iteration});
  child.now();
  if (!child.event_errors().empty()) ++(hangs(parent.iteration) ? seen.timeouts : seen.late_children);
}

void handle_child(const TimedChild& child, std::stop_token stop, Seen& seen) {
  seen.children.fetch_add(1, std::memory_order_relaxed);
  if (hangs(child.iteration)) wait_until_stopped(std::move(stop), 200ms);  // stopped at 1 ms
}

EventBusOptions child_options() {
  EventBusOptions options = dropping(128);
  options.event_timeout = child_timeout;
  return options;
}

}  // namespace

// P-SCN-6: the worst case in the shape that the Go and Rust runtimes measure.
Sample parent_child_timeouts(const Run&) {
  Seen seen;
  EventBus parent_bus("TimedParents", dropping(128));
  EventBus child_bus("TimedChildren", child_options());
  parent_bus.on<TimedParent>(
      [&seen, bus = EventBusRef(child_bus)](const TimedParent& parent) { handle_parent(parent, bus, seen); });
  child_bus.on<TimedChild>(
      [&seen](const TimedChild& child, std::stop_token stop) { handle_child(child, std::move(stop), seen); });

  std::vector<Event<TimedParent>> batch;
  batch.reserve(batch_size);
  const Stopwatch watch;
  for (std::int64_t start = 0; start < parent_count; start += batch_size) {
    const std::int64_t end = std::min(start + batch_size, parent_count);
    batch.clear();
    for (std::int64_t i = start; i < end; ++i) batch.push_back(parent_bus.emit(TimedParent{i}));
    for (const Event<TimedParent>& parent : batch) parent.now();
    parent_bus.wait_until_idle();
    child_bus.wait_until_idle();
  }
  const std::int64_t total_ns = watch.elapsed_ns();

  const MemoryUse parents = parent_bus.memory();
  const MemoryUse children = child_bus.memory();
  check_equal("parents handled", seen.parents.load(), parent_count);
  check_equal("children handled", seen.children.load(), parent_count);
  check_equal("timeouts of children that wait", seen.timeouts.load(), hanging_children);
  // A child that the machine itself kept waiting for a millisecond has timed out rightly; a library that cuts children
  // short for no reason would do it far more often.
  check(seen.late_children.load() <= parent_count / 20,
        std::to_string(seen.late_children.load()) + " children that return at once timed out");

  const double sleep_ns = static_cast<double>(std::chrono::nanoseconds(child_timeout).count() * hanging_children);
  const double floor = sleep_ns / parent_count;
  return {.total_ns = total_ns,
          .count = parent_count,
          .live_bytes_per_unit = parents.bytes_per_event + children.bytes_per_event,
          .peak_bytes_per_unit = static_cast<double>(parents.peak_bytes + children.peak_bytes) / parent_count,
          .extra = {{"", "sleep_floor_ns_per_unit", floor},
                    {"", "above_floor_ns_per_unit", static_cast<double>(total_ns) / parent_count - floor},
                    {"", "late_children", static_cast<double>(seen.late_children.load())}}};
}

}  // namespace abxbus::perf

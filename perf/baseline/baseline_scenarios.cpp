#include "baseline/baseline_scenarios.hpp"

#include "baseline/mini_bus.hpp"
#include "harness/clock.hpp"

#include <mimalloc.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace abxbus::perf {

namespace {

/// TBB keeps one thread fewer than the limit, since it counts the caller, which only waits here.
struct Threads {
  explicit Threads(int count)
      : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count) + 1), arena(count, 0) {}
  tbb::global_control limit;
  tbb::task_arena arena;
};

std::unique_ptr<Threads> threads;

constexpr std::int64_t unit_count = 50'000;

double node_bytes() {
  const NodePtr node(make_node(0, 0));
  release(node.get());  // the reference that a history would hold
  return static_cast<double>(mi_usable_size(node.get()));
}

// The trim that the library's scenario ends with has no counterpart; one more event stands for it.
void one_more(MiniBus& bus) {
  MiniBus::now(*bus.emit(0));
}

}  // namespace

void start_baseline(int workers) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  threads = std::make_unique<Threads>(workers > 0 ? workers : cores);
}

int baseline_workers() noexcept {
  return threads->arena.max_concurrency();
}

Sample baseline_many_events(const Run&) {
  constexpr std::int64_t batch_size = 512;
  std::atomic<std::int64_t> checksum{0};
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < unit_count; ++i) expected += i + i % 17;
  std::vector<NodePtr> batch;
  batch.reserve(batch_size);
  MiniBus bus(threads->arena, 512);
  bus.on([&](const Node& node) { checksum.fetch_add(node.value + node.batch_id, std::memory_order_relaxed); });

  const Stopwatch watch;
  for (std::int64_t start = 0; start < unit_count; start += batch_size) {
    const std::int64_t end = std::min(start + batch_size, unit_count);
    batch.clear();
    for (std::int64_t i = start; i < end; ++i) batch.push_back(bus.emit(i, i % 17));
    for (const NodePtr& node : batch) MiniBus::now(*node);
  }
  bus.wait_until_idle();
  one_more(bus);
  const std::int64_t total_ns = watch.elapsed_ns();

  check_equal("checksum", checksum.load(), expected);
  return {.total_ns = total_ns, .count = unit_count, .live_bytes_per_unit = node_bytes()};
}

Sample baseline_many_buses(const Run&) {
  constexpr int buses = 500;
  constexpr std::size_t events = 100;
  std::int64_t handled = 0;
  const Stopwatch watch;
  for (int life = 0; life < buses; ++life) {
    MiniBus bus(threads->arena, 128);
    bus.on([&](const Node&) { ++handled; });
    NodePtr nodes[events];
    for (std::size_t i = 0; i < events; ++i) nodes[i] = bus.emit(static_cast<std::int64_t>(i));
    for (const NodePtr& node : nodes) MiniBus::now(*node);
    bus.wait_until_idle();
  }
  const std::int64_t total_ns = watch.elapsed_ns();
  check_equal("events handled", handled, unit_count);
  return {.total_ns = total_ns, .count = unit_count, .live_bytes_per_unit = node_bytes()};
}

Sample baseline_many_handlers(const Run&) {
  std::vector<std::uint32_t> cells(static_cast<std::size_t>(unit_count), 0);
  MiniBus bus(threads->arena, 128);
  const Stopwatch registration;
  for (std::uint32_t& cell : cells) bus.on([&cell](const Node&) { ++cell; });
  const std::int64_t registration_ns = registration.elapsed_ns();

  const Stopwatch watch;
  const NodePtr node = bus.emit(1);
  MiniBus::now(*node);
  bus.wait_until_idle();
  const std::int64_t total_ns = watch.elapsed_ns();

  check(std::all_of(cells.begin(), cells.end(), [](std::uint32_t runs) { return runs == 1; }),
        "not every handler ran exactly once");
  check_equal("handlers still registered", bus.handler_count(), unit_count);
  const double bytes = static_cast<double>(mi_usable_size(node->results)) + node_bytes();
  return {.total_ns = total_ns,
          .count = unit_count,
          .live_bytes_per_unit = bytes / unit_count,
          .extra = {{"", "register_ns_per_handler", static_cast<double>(registration_ns) / unit_count}}};
}

Sample baseline_one_off_handlers(const Run&) {
  std::int64_t handled = 0;
  MiniBus bus(threads->arena, 128);
  const Stopwatch watch;
  for (std::int64_t i = 0; i < unit_count; ++i) {
    const std::size_t handler = bus.on([&](const Node&) { ++handled; });
    MiniBus::now(*bus.emit(i));
    bus.off(handler);
  }
  const std::int64_t total_ns = watch.elapsed_ns();
  check_equal("events handled", handled, unit_count);
  check_equal("handlers left", bus.handler_count(), 0);
  return {.total_ns = total_ns, .count = unit_count, .live_bytes_per_unit = node_bytes()};
}

}  // namespace abxbus::perf

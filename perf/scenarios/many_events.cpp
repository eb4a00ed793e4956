#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace abxbus::perf {

struct BatchEvent {
  std::int64_t value = 0;
  std::int64_t batch_id = 0;
};

namespace {

constexpr std::int64_t event_count = 50'000;
constexpr std::int64_t batch_size = 512;
constexpr std::size_t history_size = 512;
constexpr std::size_t remembered_ids = 64;

std::int64_t expected_checksum() {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < event_count; ++i) sum += i + i % 17;
  return sum;
}

}  // namespace

// P-SCN-1: 50 000 events through one bus, awaited batch by batch.
Sample many_events(const Run&) {
  std::atomic<std::int64_t> checksum{0};
  std::atomic<std::int64_t> handled{0};
  std::vector<Uuid> first_ids;
  std::vector<Event<BatchEvent>> batch;
  batch.reserve(batch_size);
  std::size_t longest_history = 0;

  EventBus bus("ManyEvents", dropping(history_size));
  const EventHistory history = bus.event_history();
  bus.on<BatchEvent>([&](const BatchEvent& event) {
    checksum.fetch_add(event.value + event.batch_id, std::memory_order_relaxed);
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  });

  const Stopwatch watch;
  for (std::int64_t start = 0; start < event_count; start += batch_size) {
    const std::int64_t end = std::min(start + batch_size, event_count);
    batch.clear();
    for (std::int64_t i = start; i < end; ++i) batch.push_back(bus.emit(BatchEvent{.value = i, .batch_id = i % 17}));
    for (const Event<BatchEvent>& event : batch) event.now();
    if (first_ids.empty()) {
      for (std::size_t i = 0; i < remembered_ids; ++i) first_ids.push_back(batch[i].event_id());
    }
    longest_history = std::max(longest_history, history.size());
  }
  bus.wait_until_idle();
  const MemoryUse memory = bus.memory();  // the history is full, the last batch still held
  trim_to_one(bus);
  const std::int64_t total_ns = watch.elapsed_ns();

  check_equal("events handled", handled.load(), event_count);
  check_equal("checksum", checksum.load(), expected_checksum());
  check(longest_history <= history_size, "history grew to " + std::to_string(longest_history) + " entries");
  check_equal("history after trimming", history.size(), 1);
  for (const Uuid& id : first_ids) check(!history.has_event(id), "an event of the first 64 is still in history");
  return {.total_ns = total_ns,
          .count = event_count,
          .live_bytes_per_unit = memory.bytes_per_event,
          .peak_bytes_per_unit = static_cast<double>(memory.peak_bytes) / event_count};
}

}  // namespace abxbus::perf

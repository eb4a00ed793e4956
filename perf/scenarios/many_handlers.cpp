#include "harness/clock.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace abxbus::perf {

struct FanoutEvent {
  std::int64_t value = 0;
};

namespace {

constexpr std::int64_t handler_count = 50'000;

EventBusOptions parallel_options() {
  EventBusOptions options = dropping(128);
  options.event_handler_concurrency = EventHandlerConcurrency::parallel;
  options.event_handler_completion = EventHandlerCompletion::all;
  return options;
}

}  // namespace

// P-SCN-3: one event, 50 000 parallel handlers, each with a cell of its own to count in.
Sample many_handlers(const Run&) {
  std::vector<std::uint32_t> cells(static_cast<std::size_t>(handler_count), 0);
  std::vector<std::string> ids;
  ids.reserve(cells.size());
  for (std::int64_t i = 0; i < handler_count; ++i) ids.push_back("fixed-handler-" + std::to_string(i));

  EventBus bus("ManyHandlers", parallel_options());
  const Stopwatch registration;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    bus.on<FanoutEvent>([cell = &cells[i]](const FanoutEvent&) { ++*cell; }, {.id = std::move(ids[i])});
  }
  const std::int64_t registration_ns = registration.elapsed_ns();
  const std::int64_t live_before = bus.memory().live_bytes;

  const Stopwatch watch;
  const Event<FanoutEvent> event = bus.emit(FanoutEvent{1}).now();
  bus.wait_until_idle();
  const std::int64_t total_ns = watch.elapsed_ns();

  const MemoryUse memory = bus.memory();
  check(std::all_of(cells.begin(), cells.end(), [](std::uint32_t runs) { return runs == 1; }),
        "not every handler ran exactly once");
  const EventResults results = event.event_results();
  const auto completed = std::count_if(results.begin(), results.end(), [](const EventResult& result) {
    return result.status() == EventResultStatus::completed;
  });
  check_equal("completed results", completed, handler_count);
  check_equal("handlers still registered", bus.handler_count(), handler_count);
  return {.total_ns = total_ns,
          .count = handler_count,
          .live_bytes_per_unit = static_cast<double>(memory.live_bytes - live_before) / handler_count,
          .peak_bytes_per_unit = static_cast<double>(memory.peak_bytes) / handler_count,
          .extra = {{"", "register_ns_per_handler", static_cast<double>(registration_ns) / handler_count}}};
}

}  // namespace abxbus::perf

#include "bus/completion.hpp"
#include "bus/core.hpp"
#include "bus/run.hpp"
#include "event/clock.hpp"

#include <algorithm>

/// The bus's own queue of runnable work whose order is free, and the pump that brings it to the pool: one pump is
/// pending while there is work; a thread that takes an item sends for the next thread before it enters user code.
namespace abxbus::detail {

namespace {

void pump(Job* job) noexcept;

void arm_pump(BusCore* bus) noexcept {
  if (bus->pump_armed.exchange(true, std::memory_order_seq_cst)) return;
  retain_core(bus);
  bus->pump_job.bus = bus;
  bus->pump_job.run = &pump;
  bus->pool->submit(&bus->pump_job);
}

void pump(Job* job) noexcept {
  BusCore* const bus = static_cast<BusCore::BusJob*>(job)->bus;
  bus->pump_armed.store(false, std::memory_order_seq_cst);
  ReadyQueue* const ready = bus->ready.load(std::memory_order_acquire);
  Job* item = nullptr;
  if (ready != nullptr && ready->try_dequeue(item)) {
    if (bus->ready_count.fetch_sub(1, std::memory_order_seq_cst) != 1) arm_pump(bus);
    item->run(item);
  } else if (bus->ready_count.load(std::memory_order_seq_cst) != 0) {
    arm_pump(bus);  // a false empty: the task is the retry
  }
  release_core(bus);
}

void run_parallel_event(Job* job) noexcept {
  advance(static_cast<Run*>(job), false);
}

}  // namespace

void push_ready(BusCore* bus, Job* job) noexcept {
  ReadyQueue* ready = bus->ready.load(std::memory_order_acquire);
  if (ready == nullptr) {
    auto* const fresh = new ReadyQueue(0);
    if (bus->ready.compare_exchange_strong(ready, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) {
      ready = fresh;
    } else {
      delete fresh;
    }
  }
  // Counted before it can be taken; a pump that finds nothing while the count is up comes again.
  bus->ready_count.fetch_add(1, std::memory_order_seq_cst);
  ready->enqueue(job);
  arm_pump(bus);
}

void start_parallel_run(Leg* leg) noexcept {
  BusCore* const bus = leg->bus;
  const std::int64_t now = std::max(now_ns(), leg->record->created_at + 1);
  Run* const run = start_run(leg, nullptr, false, now);
  run->Job::run = &run_parallel_event;
  push_ready(bus, run);
}

}  // namespace abxbus::detail

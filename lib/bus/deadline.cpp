#include "bus/cancel.hpp"
#include "bus/fan_out.hpp"
#include "bus/run.hpp"
#include "bus/settle.hpp"
#include "bus/take.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/hooks.hpp"
#include "event/log.hpp"
#include "event/names.hpp"

#include <string>

/// What the watchdog finds: deadlines and slow thresholds that have passed.
namespace abxbus::detail {

namespace {

struct LogJob : Job {
  std::string text;
};

/// On a pool thread: the slot has been taken because its deadline passed.
void settle_after_deadline(Job* job) noexcept {
  ExecSlot& slot = *static_cast<ExecSlot::SettleJob*>(job)->slot;
  Run* const run = slot.run.load(std::memory_order_relaxed);
  const std::uint32_t index = slot.index.load(std::memory_order_relaxed);
  const bool whole_event = slot.event_deadline.load(std::memory_order_relaxed);
  // The event may be over, and the bus's owner gone, before this thread has passed on what the run held.
  BusCore* const bus = run->bus;
  retain_core(bus);
  retain_run(run);
  if (whole_event) {
    begin_cut(run->leg, Cut::event_timeout);
    settle_cut(run, index, Cut::event_timeout, true);
  } else {
    settle_handler_timeout(run, index);
  }
  const std::uint32_t uncounted = uncounted_of(slot);
  release_executor(slot, run, index, true);
  if (run->parallel && whole_event) take_running(run->leg, Cut::event_timeout, nullptr);
  cancel_children(run, index, whole_event, whole_event ? Cut::event_timeout : Cut::none);
  if (run->parallel && whole_event) participate(run);  // cancels what has not started
  continue_after_taking(run, uncounted);
  release_run(run);
  release_core(bus);
}

void run_log_job(Job* job) noexcept {
  auto* const line = static_cast<LogJob*>(job);
  log(LogLevel::warning, line->text);
  delete line;
}

}  // namespace

void deadline_passed(ExecSlot& slot, std::uint64_t word) noexcept {
  if (!try_take(slot, word)) return;
  ABXBUS_HOOK(taken);
  slot.settle.slot = &slot;
  slot.settle.run = &settle_after_deadline;
  WorkerPool* const pool = slot.run.load(std::memory_order_relaxed)->bus->pool;
  count_out(slot, pool);
  pool->submit(&slot.settle, WorkerPool::Urgency::at_once);
}

void slow_threshold_passed(ExecSlot& slot, std::uint64_t word, bool event) noexcept {
  std::uint64_t expected = word;
  if (!slot.word.compare_exchange_strong(expected, word | slot_pin, std::memory_order_acq_rel)) return;
  // Pinned: the executor cannot leave, so run, event and handler are alive.
  Run* const run = slot.run.load(std::memory_order_relaxed);
  const HandlerRun& result = run->results[slot.index.load(std::memory_order_relaxed)];
  WorkerPool* const pool = run->bus->pool;
  LogJob* line = nullptr;
  const std::int64_t now = now_ns();
  if (!event) {
    slot.slow_at.store(INT64_MAX, std::memory_order_relaxed);
    const auto elapsed = static_cast<double>(now - result.started_at.load(std::memory_order_relaxed)) / 1e9;
    line = new LogJob;
    line->text = "Slow event handler: " + run->bus->label + ".on(" + event_label_of(run->record) + ", " +
                 entry_label(*result.entry) + ") still running after " + fixed_text(elapsed, 2) + "s";
  } else {
    slot.event_slow_at.store(INT64_MAX, std::memory_order_relaxed);
    if (!run->leg->slow_warned.exchange(true, std::memory_order_relaxed)) {
      std::size_t running = 0;
      for (std::uint32_t i = 0; i < run->count; ++i)
        running += run->results[i].status.load(std::memory_order_acquire) == RunStatus::started ? 1U : 0U;
      const auto elapsed = static_cast<double>(now - run->record->started_at.load(std::memory_order_relaxed)) / 1e9;
      line = new LogJob;
      line->text = "Slow event processing: " + run->bus->label + ".on(" + event_label_of(run->record) + ", " +
                   std::to_string(running) + " handlers) still running after " + fixed_text(elapsed, 2) + "s";
    }
  }
  slot.word.fetch_and(~slot_pin, std::memory_order_release);
  if (line != nullptr) {
    line->run = &run_log_job;
    pool->submit(line);
  }
}

}  // namespace abxbus::detail

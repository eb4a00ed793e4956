#include "bus/cancel.hpp"

#include "bus/resolve.hpp"
#include "bus/settle.hpp"
#include "bus/take.hpp"
#include "bus/turn.hpp"
#include "event/clock.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace abxbus::detail {

namespace {

/// The blocking children that `belongs` says yes to and that nobody else cancels; each is cancelled from now on.
template <class F>
void push_children(Record* parent, const std::exception_ptr& cause, std::vector<RecordPtr>& pending, F belongs) {
  RareData* const rare = parent->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return;
  const std::size_t before = pending.size();
  {
    const std::lock_guard lock(rare->mutex);
    for (const RareData::Child& child : rare->children) {
      const std::uint32_t flags = child.record.get()->flags.load(std::memory_order_seq_cst);
      if ((flags & (flag_blocking | flag_completed | flag_cancelled)) == flag_blocking && belongs(child.emitter))
        pending.push_back(child.record);
    }
  }
  const auto is_somebody_elses = [&](const RecordPtr& event) {
    RareData& theirs = rare_of(as_record(event.get()));
    {
      const std::lock_guard lock(theirs.mutex);
      if (!theirs.cancel_cause) theirs.cancel_cause = cause;
    }
    return (event.get()->flags.fetch_or(flag_cancelled, std::memory_order_seq_cst) & flag_cancelled) != 0;
  };
  const auto added = pending.begin() + static_cast<std::ptrdiff_t>(before);
  pending.erase(std::remove_if(added, pending.end(), is_somebody_elses), pending.end());
}

void cancel_leg(Leg* leg) noexcept {
  BusCore* const bus = leg->bus;
  begin_cut(leg, Cut::parent);  // another reason that came first ends it just the same
  if (bus->destroyed.load(std::memory_order_acquire)) return;
  if (!claim_leg(leg)) {
    take_running(leg, Cut::parent, nullptr);
    return;
  }
  // Still queued: no handler of it starts, each that matches now gets its result (T-NST-3).
  const bool global = resolve_concurrency(leg->record, bus) == EventConcurrency::global_serial;
  if (global) pause_bus(bus);
  Run* const run = start_run(leg, nullptr, false, std::max(now_ns(), leg->record->created_at + 1));
  advance(run, false);
  // A head that waited for the global lock is gone: the bus looks at the next one.
  if (global) resume_bus(bus);
}

}  // namespace

void cancel_children(Run* run, std::uint32_t index, bool whole_event, Cut reason) noexcept {
  Record* const record = run->record;
  if (record->rare.load(std::memory_order_acquire) == nullptr) return;  // it has no children
  const HandlerRun* const first = whole_event ? run->results : &run->results[index];
  const HandlerRun* const end = first + (whole_event ? run->count : 1);
  std::vector<RecordPtr> pending;
  std::exception_ptr cause;
  if (reason == Cut::none) {
    // Its own deadline: the error that stands in the result.
    if (const auto* const error = run->results[index].value.get_if<std::exception_ptr>()) cause = *error;
  } else {
    cause = cut_cause(run, reason);
  }
  push_children(record, cause, pending, [&](const HandlerRun* emitter) { return emitter >= first && emitter < end; });
  if (pending.empty()) return;
  while (!pending.empty()) {
    const RecordPtr event = std::move(pending.back());
    pending.pop_back();
    Record* const child = as_record(event.get());
    for (Leg* leg = &child->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_seq_cst))
      if (leg->bus != nullptr) cancel_leg(leg);
    push_children(child, cause, pending, [](const HandlerRun*) { return true; });
  }
  // The run ends after what it waited for.
  if (!run->parallel) run->finished_at = std::max(run->finished_at, now_ns());
}

void cancel_late_leg(Leg* leg) noexcept {
  if ((leg->record->flags.load(std::memory_order_seq_cst) & flag_cancelled) != 0) cancel_leg(leg);
}

}  // namespace abxbus::detail

#include "bus/settle.hpp"

#include "bus/completion.hpp"
#include "bus/fan_out.hpp"
#include "bus/resolve.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/hooks.hpp"
#include "event/log.hpp"
#include "event/names.hpp"

#include <abxbus/error.hpp>

#include <algorithm>
#include <string>

namespace abxbus::detail {

bool usable(const HandlerRun& result) noexcept {
  return result.status.load(std::memory_order_acquire) == RunStatus::completed && !result.value.empty() &&
         !result.value.is(ValueKind::event);
}

bool begin_cut(Leg* leg, Cut reason) noexcept {
  Cut none = Cut::none;
  return leg->cut.compare_exchange_strong(none, reason, std::memory_order_seq_cst);
}

Cut cut_of(const Run* run) noexcept {
  const Cut cut = run->leg->cut.load(std::memory_order_seq_cst);
  if (cut != Cut::none || !run->bus->destroyed.load(std::memory_order_seq_cst)) return cut;
  begin_cut(run->leg, Cut::destroy);
  return run->leg->cut.load(std::memory_order_seq_cst);
}

namespace {

EventHandlerErrorInfo info_of(const Run* run, std::uint32_t index, std::optional<Seconds> timeout,
                              std::exception_ptr cause) {
  const HandlerRun& result = run->results[index];
  EventHandlerErrorInfo info;
  info.event_result_id = result_id_of(run->record, &result);
  info.event_id = event_id_of(run->record);
  info.event_type = type_name_of(run->record);
  info.handler_id = entry_id(*result.entry);
  info.handler_name = entry_name(*result.entry);
  info.event_timeout = option_fields(run->record).event_timeout;
  info.timeout_seconds = timeout;
  info.cause = std::move(cause);
  return info;
}

Seconds in_seconds(std::int64_t ns) noexcept {
  return Seconds(static_cast<double>(ns) / 1e9);
}

std::string timed_out_text(const Run* run, const HandlerRun& result, std::int64_t timeout_ns) {
  return run->bus->label + ".on(" + event_label_of(run->record) + ", " + entry_display(*result.entry) +
         ") timed out after " + seconds_text(in_seconds(timeout_ns)) + "s";
}

/// A reading for the end of a result; also the start of what this thread does next.
std::int64_t end_time(Run* run, Share* share) noexcept {
  const std::int64_t now = now_ns_chained();
  if (share != nullptr) {
    share->last_time = now;
  } else if (!run->parallel) {
    run->finished_at = now;
  }
  return now;
}

void publish_terminal(HandlerRun& result, RunStatus status, std::int64_t now) noexcept {
  result.completed_at.store(std::max(now, result.started_at.load(std::memory_order_relaxed)),
                            std::memory_order_relaxed);
  // A plain end needs no more than release: nobody was asked to stop, and waiters are told behind a fence of their own.
  result.status.store(status, std::memory_order_release);
}

/// A handler's result that is the very event it ran for (a forwarder's). Held by value it would keep its own event
/// alive for ever.
struct OwnEvent {};

/// What a thrown error is recorded as: a TimeoutError that escaped becomes an EventHandlerTimeoutError (T-HND-6).
std::exception_ptr normalised(Run* run, std::uint32_t index, std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const EventHandlerTimeoutError&) {
    return error;
  } catch (const TimeoutError& timeout) {
    std::string text = timeout.what();
    if (text.empty())
      text = run->bus->label + ".on(" + event_label_of(run->record) + ", " + entry_display(*run->results[index].entry) +
             ") timed out";
    return std::make_exception_ptr(
        EventHandlerTimeoutError(text, info_of(run, index, timeout.timeout_seconds(), error)));
  } catch (...) {
    return error;
  }
}

std::string cut_text(Cut reason, bool was_running, const std::exception_ptr& cause) {
  const char* const what = was_running ? "Aborted running handler due to " : "Cancelled pending handler due to ";
  switch (reason) {
    case Cut::event_timeout:
      return std::string(what) + "event timeout";
    case Cut::first:
      return was_running ? "Aborted: first result resolved" : "Cancelled: first result resolved";
    case Cut::destroy:
      return std::string(what) + "event bus destroy";
    case Cut::parent:
    case Cut::none:
      break;
  }
  return std::string(what) + "parent error: " + error_message(cause);
}

}  // namespace

std::exception_ptr cut_cause(Run* run, Cut reason) {
  std::call_once(run->cause_once, [&] {
    switch (reason) {
      case Cut::event_timeout: {
        // The anchor: the first running result in handler order, else the first pending one.
        const std::int64_t timeout = resolve_event_timeout(run->record, run->bus);
        std::uint32_t anchor = run->count;
        for (std::uint32_t i = 0; i < run->count && anchor == run->count; ++i)
          if (run->results[i].status.load(std::memory_order_acquire) == RunStatus::started) anchor = i;
        for (std::uint32_t i = 0; i < run->count && anchor == run->count; ++i)
          if (run->results[i].status.load(std::memory_order_acquire) == RunStatus::pending) anchor = i;
        if (anchor == run->count) anchor = 0;
        const std::string text = timed_out_text(run, run->results[anchor], timeout);
        const auto cause = std::make_exception_ptr(TimeoutError(text, in_seconds(timeout)));
        run->cut_cause =
            std::make_exception_ptr(EventHandlerTimeoutError(text, info_of(run, anchor, in_seconds(timeout), cause)));
        break;
      }
      case Cut::first:
        run->cut_cause = std::make_exception_ptr(Error("first result resolved"));
        break;
      case Cut::destroy:
        run->cut_cause = std::make_exception_ptr(Error("event bus destroyed"));
        break;
      case Cut::parent: {
        RareData& rare = rare_of(run->record);
        const std::lock_guard lock(rare.mutex);
        run->cut_cause = rare.cancel_cause;
        break;
      }
      case Cut::none:
        break;
    }
  });
  return run->cut_cause;
}

namespace {

/// A handler may have failed for want of memory: then there may be none for the line either, which must not end the
/// process. An empty text is no line.
template <class Text>
void log_unless_out_of_memory(LogLevel level, Text text) noexcept {
  if (!log_enabled(level)) return;
  try {
    const std::string line = text();
    if (!line.empty()) log(level, line);
  } catch (const std::exception&) {
    log(level, "An event handler failed, and there is no memory to say which");
  }
}

}  // namespace

void settle_outcome(Run* run, std::uint32_t index, Value&& value, std::exception_ptr error, Share* share) noexcept {
  HandlerRun& result = run->results[index];
  if (!error && value.is(ValueKind::error)) {
    error = *static_cast<const std::exception_ptr*>(value.object());
    // A payload that does not fit is recorded by the library itself.
    log_unless_out_of_memory(LogLevel::warning, [&] {
      if (error_type_name(error) == "EventHandlerPayloadSchemaError") return std::string();
      return "Event handler " + std::string(entry_name(*result.entry)) + "(" + event_label_of(run->record) +
             ") returned an error instead of throwing it";
    });
  }
  if (error) [[unlikely]] {
    error = normalised(run, index, std::move(error));
    log_unless_out_of_memory(LogLevel::error, [&] {
      return "Error in event handler " + std::string(entry_name(*result.entry)) + "(" + event_label_of(run->record) +
             ") -> " + error_type_name(error) + "(" + error_message(error) + ")";
    });
    result.value = Value::make(std::move(error), ValueKind::error);
    publish_terminal(result, RunStatus::error, end_time(run, share));
    return;
  }
  const bool is_event = value.is(ValueKind::event);
  if (is_event && value.get_if<BaseEvent>()->record() == run->record) value = Value::make(OwnEvent{}, ValueKind::event);
  result.value = std::move(value);
  publish_terminal(result, RunStatus::completed, end_time(run, share));
  // The last result's waiters are released by the event's completion.
}

void settle_cut(Run* run, std::uint32_t index, Cut reason, bool was_running) noexcept {
  HandlerRun& result = run->results[index];
  const std::int64_t now = now_ns();
  if (!run->parallel) run->finished_at = now;
  if (!was_running) hold_entry(run, result);
  if (result.started_at.load(std::memory_order_relaxed) == 0) result.started_at.store(now, std::memory_order_relaxed);
  std::exception_ptr cause = cut_cause(run, reason);
  std::optional<Seconds> timeout = option_fields(run->record).event_timeout;
  if (reason == Cut::event_timeout) timeout = in_seconds(resolve_event_timeout(run->record, run->bus));
  const std::string text = cut_text(reason, was_running, cause);
  EventHandlerErrorInfo info = info_of(run, index, timeout, std::move(cause));
  std::exception_ptr error = was_running ? std::make_exception_ptr(EventHandlerAbortedError(text, std::move(info)))
                                         : std::make_exception_ptr(EventHandlerCancelledError(text, std::move(info)));
  result.value = Value::make(std::move(error), ValueKind::error);
  result.completed_at.store(now, std::memory_order_relaxed);
  result.status.store(RunStatus::error, std::memory_order_seq_cst);
  if (run->count > 1) result_settled(run->record, false);
}

void settle_handler_timeout(Run* run, std::uint32_t index) noexcept {
  HandlerRun& result = run->results[index];
  const std::int64_t timeout = limits_of(run, result.entry).effective();
  const std::string text = timed_out_text(run, result, timeout);
  const Seconds seconds = in_seconds(timeout);
  const auto cause = std::make_exception_ptr(TimeoutError(text, seconds));
  result.value = Value::make(
      std::make_exception_ptr(EventHandlerTimeoutError(text, info_of(run, index, seconds, cause))), ValueKind::error);
  const std::int64_t now = now_ns();
  if (!run->parallel) run->finished_at = now;
  result.completed_at.store(now, std::memory_order_relaxed);
  result.status.store(RunStatus::error, std::memory_order_seq_cst);
  if (run->count > 1) result_settled(run->record, false);
  run->timed_out.store(true, std::memory_order_release);
}

void report_handler_timeouts(Run* run) noexcept {
  if (!log_enabled(LogLevel::warning)) return;
  for (std::uint32_t i = 0; i < run->count; ++i) {
    const HandlerRun& result = run->results[i];
    if (result.status.load(std::memory_order_acquire) != RunStatus::error) continue;
    const auto* const error = result.value.get_if<std::exception_ptr>();
    if (error == nullptr || error_type_name(*error) != "EventHandlerTimeoutError") continue;
    const std::int64_t limit = limits_of(run, result.entry).effective();
    std::string text = "TIMEOUT ERROR: " + run->bus->label + "." + std::string(entry_name(*result.entry)) + "(" +
                       event_label_of(run->record) + ") after " + seconds_text(in_seconds(limit)) + "s";
    for (std::uint32_t j = 0; j < run->count; ++j) {
      const HandlerRun& each = run->results[j];
      const std::int64_t elapsed =
          each.completed_at.load(std::memory_order_relaxed) - each.started_at.load(std::memory_order_relaxed);
      text += "\n  " + entry_label(*each.entry) + " " +
              (each.status.load(std::memory_order_acquire) == RunStatus::completed ? "completed" : "error") + " " +
              fixed_text(static_cast<double>(elapsed) / 1e9, 2) + "s";
    }
    log(LogLevel::warning, text);
  }
}

}  // namespace abxbus::detail

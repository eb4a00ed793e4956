#include "bus/entry.hpp"
#include "bus/resolve.hpp"
#include "bus/waiting.hpp"
#include "event/futex.hpp"
#include "event/names.hpp"
#include "event/text_forms.hpp"

#include <abxbus/error.hpp>
#include <abxbus/event_bus.hpp>
#include <abxbus/event_result.hpp>

#include <boost/json/value.hpp>

#include <algorithm>

/// Reading results, and the accessors' rules for waiting (T-RES).
namespace abxbus {

namespace detail {

namespace {

const BusCore* bus_of(const Record* record, const HandlerRun* run) noexcept {
  for (const Leg* leg = &record->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    const HandlerRun* results = leg->results.load(std::memory_order_acquire);
    if (results != nullptr && run >= results && run < results + leg->result_count) return leg->bus;
  }
  return record->first_leg.bus;
}

/// Results in creation order.
std::vector<EventResult> all_results(RecordHead* head) {
  std::vector<EventResult> results;
  for (const Leg* leg = &as_record(head)->first_leg; leg != nullptr; leg = leg->next.load(std::memory_order_acquire)) {
    HandlerRun* const runs = leg->results.load(std::memory_order_acquire);
    if (runs == nullptr) continue;
    results.reserve(results.size() + leg->result_count);
    for (std::uint32_t i = 0; i < leg->result_count; ++i) results.emplace_back(RecordPtr::share(head), runs + i);
  }
  return results;
}

}  // namespace

EventResults accessor_results(RecordHead* head, bool first, bool wait, const std::stop_token& stop) {
  Record* const record = as_record(head);
  if (record == nullptr) throw ValidationError("event must not be an empty handle", "event");
  const char* const operation = first ? "event_result" : "event_results_list";
  if (!record->completed()) {
    if (wait || !record->accepted()) {
      const bool over = check_waitable(record, operation);
      mark_awaited(record);
      if (!over && (record->flags.load(std::memory_order_acquire) & flag_first_seen) == 0) {
        WaitOptions options;
        options.first_result = first;
        options.stop_token = stop;
        if (stop.stop_requested()) throw OperationCancelled("the wait was stopped");
        if (record->started_at.load(std::memory_order_acquire) == 0) {
          jump_and_wait(record, options, no_deadline);
        } else {
          wait_for_event(record, options, no_deadline);
        }
      }
    }
  } else {
    mark_awaited(record);
  }
  std::vector<EventResult> results = all_results(head);
  std::stable_sort(results.begin(), results.end(), [](const EventResult& a, const EventResult& b) {
    return a.run()->entry->registered_at < b.run()->entry->registered_at;
  });
  return EventResults(std::move(results));
}

void raise_errors(const EventResults& results, RecordHead* record) {
  std::vector<std::exception_ptr> errors;
  for (const EventResult& result : results)
    if (std::exception_ptr error = result.error()) errors.push_back(std::move(error));
  if (errors.empty()) return;
  if (errors.size() == 1) std::rethrow_exception(errors.front());
  const Record* const event = as_record(record);
  throw EventHandlerErrors(type_name_of(event), event_id_of(event), std::move(errors), event_label_of(event));
}

void raise_none(RecordHead* record) {
  const Record* const event = as_record(record);
  throw EventResultNoneError(type_name_of(event), event_id_of(event), event_label_of(event));
}

json::ref value_as_json(const Value& value) {
  if (value.empty()) return {boost::json::value(nullptr)};
  if (value.ops()->encode == nullptr) throw ValidationError("this result has no JSON form", "result");
  codec::Writer writer;
  value.ops()->encode(value.object(), writer);
  return {writer.take()};
}

void raise_undecodable(const EventResult& result, std::exception_ptr cause) {
  EventHandlerErrorInfo info;
  info.event_result_id = result.id();
  info.event_id = result.event_id();
  info.handler_id = result.handler_id();
  info.handler_name = result.handler_name();
  info.cause = cause;
  std::shared_ptr<const boost::json::value> raw;
  try {
    raw = std::make_shared<const boost::json::value>(result.result());
  } catch (const ValidationError&) {
  }
  std::string text = error_message(cause);
  throw EventHandlerResultSchemaError("Event handler return value did not match event_result_type: " + text,
                                      std::move(info), std::move(raw));
}

bool json_is_null(const json::value& value) noexcept {
  return value.is_null();
}

}  // namespace detail

using namespace detail;

Uuid EventResult::id() const {
  return result_id_of(as_record(record_.get()), run_);
}
EventResultStatus EventResult::status() const noexcept {
  switch (run_->status.load(std::memory_order_acquire)) {
    case RunStatus::pending:
      return EventResultStatus::pending;
    case RunStatus::started:
      return EventResultStatus::started;
    case RunStatus::completed:
      return EventResultStatus::completed;
    case RunStatus::error:
      break;
  }
  return EventResultStatus::error;
}
Uuid EventResult::event_id() const {
  return event_id_of(as_record(record_.get()));
}
std::string EventResult::handler_id() const {
  return entry_id(*run_->entry);
}
std::string EventResult::handler_name() const {
  return std::string(entry_name(*run_->entry));
}
std::optional<std::string> EventResult::handler_file_path() const {
  std::string path = entry_file_path(*run_->entry);
  if (path.empty()) return std::nullopt;
  return path;
}
std::optional<Seconds> EventResult::handler_timeout() const noexcept {
  return entry_timeout(*run_->entry);
}
std::optional<Seconds> EventResult::handler_slow_timeout() const noexcept {
  return entry_slow_timeout(*run_->entry);
}
Timestamp EventResult::handler_registered_at() const noexcept {
  return to_timestamp(run_->entry->registered_at);
}
std::string EventResult::handler_event_pattern() const {
  return run_->entry->key->name;
}
std::string EventResult::eventbus_id() const {
  return bus_of(as_record(record_.get()), run_)->id;
}
std::string EventResult::eventbus_name() const {
  return bus_of(as_record(record_.get()), run_)->name;
}
std::optional<Timestamp> EventResult::started_at() const noexcept {
  if (run_->status.load(std::memory_order_acquire) == RunStatus::pending) return std::nullopt;
  return to_timestamp(run_->started_at.load(std::memory_order_relaxed));
}
std::optional<Timestamp> EventResult::completed_at() const noexcept {
  if (!run_->terminal()) return std::nullopt;
  return to_timestamp(run_->completed_at.load(std::memory_order_relaxed));
}
const Value* EventResult::settled() const noexcept {
  return run_->terminal() ? &run_->value : nullptr;
}
bool EventResult::usable() const noexcept {
  return run_->status.load(std::memory_order_acquire) == RunStatus::completed && !run_->value.empty() &&
         !run_->value.is(ValueKind::event);
}
json::value EventResult::result() const {
  const Value* const value = settled();
  if (value == nullptr || value->empty() || value->is(ValueKind::error) || value->is(ValueKind::event)) return nullptr;
  return value_as_json(*value).get();
}
std::exception_ptr EventResult::error() const noexcept {
  if (run_->status.load(std::memory_order_acquire) != RunStatus::error) return nullptr;
  const auto* const error = run_->value.get_if<std::exception_ptr>();
  return error == nullptr ? nullptr : *error;
}
std::string EventResult::error_type() const {
  return error_type_name(error());
}
std::string EventResult::error_message() const {
  return abxbus::error_message(error());
}
json::value EventResult::raw_value() const {
  if (const std::exception_ptr failure = error()) {
    try {
      std::rethrow_exception(failure);
    } catch (const EventHandlerResultSchemaError& mismatch) {
      return mismatch.raw_value();
    } catch (...) {
      return nullptr;
    }
  }
  return result();
}
std::optional<BaseEvent> EventResult::event_value() const {
  const Value* const value = settled();
  if (value == nullptr || !value->is(ValueKind::event)) return std::nullopt;
  const auto* const other = value->get_if<BaseEvent>();
  return other != nullptr ? *other : BaseEvent(record_);  // else the event itself (settle.cpp)
}
std::optional<Seconds> EventResult::timeout() const noexcept {
  const std::uint32_t stored = run_->timeout_us.load(std::memory_order_relaxed);
  if (stored == 0) return std::nullopt;
  return Seconds(static_cast<double>(stored) / 1e6);
}
std::vector<BaseEvent> EventResult::event_children() const {
  std::vector<BaseEvent> children;
  RareData* const rare = as_record(record_.get())->rare.load(std::memory_order_acquire);
  if (rare == nullptr) return children;
  const std::lock_guard lock(rare->mutex);
  for (const RareData::Child& child : rare->children)
    if (child.emitter == run_) children.emplace_back(child.record);
  return children;
}

void EventResult::wait(WaitOptions options) const {
  Record* const record = as_record(record_.get());
  const std::int64_t deadline = wait_deadline(options);
  if (run_->terminal()) return;
  if (options.stop_token.stop_requested()) throw OperationCancelled("the wait was stopped");
  while (!run_->terminal()) {
    Waiter waiter;
    waiter.wants = Waiter::any_result;
    waiter.run = run_;
    sleep_on(record, waiter, options.stop_token, deadline);
    if (run_->terminal()) return;
    switch (waiter.state.load(std::memory_order_acquire)) {
      case WaiterState::waiting:
      case WaiterState::look_again:
      case WaiterState::signalled:
        break;
      case WaiterState::dropped:
        throw_destroyed(record->first_leg.bus, "wait");
      case WaiterState::cancelled:
        throw OperationCancelled("the wait was stopped");
      case WaiterState::timed_out:
        throw TimeoutError("Event handler " + bus_of(record, run_)->label + "." +
                               std::string(entry_name(*run_->entry)) + "(#" +
                               std::string(last4(event_id_of(record).str())) + ") timed out after " +
                               seconds_text(*options.timeout) + "s",
                           options.timeout);
    }
  }
}

bool EventResults::contains(std::string_view handler_id) const {
  return std::any_of(results_.begin(), results_.end(),
                     [&](const EventResult& each) { return each.handler_id() == handler_id; });
}
const EventResult& EventResults::at(std::string_view handler_id) const {
  for (const EventResult& each : results_)
    if (each.handler_id() == handler_id) return each;
  throw std::out_of_range("no result of handler " + std::string(handler_id));
}

EventResults BaseEvent::event_results() const {
  return EventResults(all_results(record_.get()));
}

std::vector<std::exception_ptr> BaseEvent::event_errors() const {
  std::vector<std::pair<std::int64_t, std::exception_ptr>> errors;
  for (const EventResult& result : all_results(record_.get()))
    if (std::exception_ptr error = result.error())
      errors.emplace_back(result.run()->completed_at.load(std::memory_order_relaxed), std::move(error));
  std::stable_sort(errors.begin(), errors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::exception_ptr> ordered;
  for (auto& each : errors) ordered.push_back(std::move(each.second));
  return ordered;
}

}  // namespace abxbus

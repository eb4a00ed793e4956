#pragma once

#include <abxbus/detail/record_head.hpp>
#include <abxbus/detail/value.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/modes.hpp>
#include <abxbus/options.hpp>
#include <abxbus/timestamp.hpp>
#include <abxbus/uuid.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abxbus {

/// The record of one handler run (T-HND-12, T-HND-13): `pending` -> `started` -> `completed` | `error`. A handle:
/// it keeps its event alive. Getters may be called from any thread at any time and show one consistent state: a
/// terminal status never without its value or error and `completed_at` (S-MT-1).
class EventResult {
 public:
  /// UUIDv7 of this result, derived on demand.
  Uuid id() const;
  EventResultStatus status() const noexcept;
  Uuid event_id() const;
  std::string handler_id() const;
  std::string handler_name() const;
  std::optional<std::string> handler_file_path() const;
  /// The registration's own limits, not the effective ones (T-TMO-13).
  std::optional<Seconds> handler_timeout() const noexcept;
  std::optional<Seconds> handler_slow_timeout() const noexcept;
  Timestamp handler_registered_at() const noexcept;
  std::string handler_event_pattern() const;
  std::string eventbus_id() const;
  std::string eventbus_name() const;
  std::optional<Timestamp> started_at() const noexcept;
  std::optional<Timestamp> completed_at() const noexcept;
  /// The value as JSON; null while unfinished, for no value, for an error (T-HND-8). Include `abxbus/json.hpp`.
  json::value result() const;
  /// The error of a failed run, else null.
  std::exception_ptr error() const noexcept;
  std::string error_type() const;
  std::string error_message() const;
  /// The value a schema check rejected; for every other result that of `result()` (T-ERR-14).
  json::value raw_value() const;
  /// The event that the handler returned (T-HND-9).
  std::optional<BaseEvent> event_value() const;
  /// The effective handler timeout (T-TMO-12); unset: none, or not started.
  std::optional<Seconds> timeout() const noexcept;
  /// Children emitted by this run, in order.
  std::vector<BaseEvent> event_children() const;

  /// The value as `R`; nothing for no value, an error or an event. ValidationError when it does not fit (D-TEV-8).
  template <class R>
  std::optional<R> result_as() const;

  /// Waits until the run is settled; never throws the handler's error. TimeoutError at the timeout (T-HND-14).
  void wait(WaitOptions options = {}) const;
  /// Waits, then returns the value or rethrows the handler's error (T-HND-14).
  template <class R = json::value>
  std::optional<R> get(WaitOptions options = {}) const;

  friend bool operator==(const EventResult& a, const EventResult& b) noexcept { return a.run_ == b.run_; }

  /// Internal: a result of `record`.
  EventResult(detail::RecordPtr record, detail::HandlerRun* run) noexcept : record_(std::move(record)), run_(run) {}
  /// Internal.
  detail::HandlerRun* run() const noexcept { return run_; }
  /// Internal: the settled value, error or event; null while unfinished.
  const detail::Value* settled() const noexcept;
  /// Internal: usable value in the sense of T-RES-4.
  bool usable() const noexcept;

 private:
  detail::RecordPtr record_;
  detail::HandlerRun* run_;
};

/// A snapshot of an event's results in T-RES-11 order: creation order, that is per bus the handlers of the type in
/// registration order, then those of "*".
class EventResults {
 public:
  using const_iterator = std::vector<EventResult>::const_iterator;
  const_iterator begin() const noexcept { return results_.begin(); }
  const_iterator end() const noexcept { return results_.end(); }
  std::size_t size() const noexcept { return results_.size(); }
  bool empty() const noexcept { return results_.empty(); }
  const EventResult& operator[](std::size_t index) const { return results_[index]; }
  /// By handler id; a handler of two buses counts once each.
  bool contains(std::string_view handler_id) const;
  /// Throws std::out_of_range.
  const EventResult& at(std::string_view handler_id) const;

  /// Internal.
  explicit EventResults(std::vector<EventResult> results) noexcept : results_(std::move(results)) {}

 private:
  std::vector<EventResult> results_;
};

}  // namespace abxbus

#include <abxbus/detail/result_access.hpp>

#pragma once

#include <abxbus/modes.hpp>
#include <abxbus/uuid.hpp>

#include <boost/json/fwd.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// The error classes. Every one tells its name, which is also its `type` on the wire. `catch (const std::exception&)`,
/// `catch (const Error&)` and each category catch without ambiguity, because shared bases are virtual (T-ERR-10).
///
/// A class derived from one of these names every virtual base in its own constructor:
/// `MyTimeout() : Error("too slow"), TimeoutError("too slow") {}`.
///
/// What an error carries are copies of its own, valid after bus and event are gone (T-ERR-11). Copying an error never
/// throws. Threads: an error that was thrown is read-only and may be read by any number of threads.

namespace abxbus {

/// A bad argument, option, document or schema value. Thrown before anything changed.
class ValidationError : public std::invalid_argument {
 public:
  explicit ValidationError(const std::string& message, std::string_view field = {});
  virtual std::string_view type_name() const noexcept;
  /// Name or path of what is wrong; empty when that is not a field.
  const std::string& field() const noexcept { return *field_; }

 private:
  std::shared_ptr<const std::string> field_;
};

/// Base of all errors but ValidationError, and the plain cause of some.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  /// Name of the class, which is also the `type` on the wire. Lives as long as the error.
  virtual std::string_view type_name() const noexcept;
};

/// A caller's own wait expired (T-TMO-35, T-HND-14). What was waited for goes on.
class TimeoutError : public virtual Error {
 public:
  explicit TimeoutError(const std::string& message, std::optional<Seconds> timeout_seconds = {});
  std::string_view type_name() const noexcept override;
  std::optional<Seconds> timeout_seconds() const noexcept { return timeout_seconds_; }

 private:
  std::optional<Seconds> timeout_seconds_;
};

/// Category of everything that ended because it was no longer wanted.
class CancelledError : public virtual Error {
 public:
  explicit CancelledError(const std::string& message);
  std::string_view type_name() const noexcept override;
};

/// A library call was blocked in an abandoned handler, or its stop token was stopped (T-CAN-10 to T-CAN-15).
class OperationCancelled : public CancelledError {
 public:
  explicit OperationCancelled(const std::string& message);
  std::string_view type_name() const noexcept override;
};

/// What an EventHandlerError carries. Members that are not known stay nil, empty or unset.
struct EventHandlerErrorInfo {
  Uuid event_result_id = {};
  Uuid event_id = {};
  std::string event_type = {};
  std::string handler_id = {};
  std::string handler_name = {};
  std::optional<Seconds> event_timeout = {};    ///< the event's own field, not the effective value
  std::optional<Seconds> timeout_seconds = {};  ///< the limit that was exceeded
  std::exception_ptr cause = {};
};

/// Category of the errors that the library records on results.
class EventHandlerError : public virtual Error {
 public:
  explicit EventHandlerError(const std::string& message, EventHandlerErrorInfo info = {});
  std::string_view type_name() const noexcept override;

  const Uuid& event_result_id() const noexcept { return info_->event_result_id; }
  const Uuid& event_id() const noexcept { return info_->event_id; }
  const std::string& event_type() const noexcept { return info_->event_type; }
  const std::string& handler_id() const noexcept { return info_->handler_id; }
  const std::string& handler_name() const noexcept { return info_->handler_name; }
  std::optional<Seconds> event_timeout() const noexcept { return info_->event_timeout; }
  std::optional<Seconds> timeout_seconds() const noexcept { return info_->timeout_seconds; }
  /// What led to this error; null when nothing did.
  const std::exception_ptr& cause() const noexcept { return info_->cause; }

 private:
  std::shared_ptr<const EventHandlerErrorInfo> info_;
};

/// A handler's deadline passed (T-TMO-23), or a TimeoutError escaped from it (T-HND-6).
class EventHandlerTimeoutError : public EventHandlerError, public TimeoutError {
 public:
  explicit EventHandlerTimeoutError(const std::string& message, EventHandlerErrorInfo info = {});
  std::string_view type_name() const noexcept override;
  /// The effective handler timeout, or that of the TimeoutError that escaped (T-ERR-12). Both bases tell the same.
  std::optional<Seconds> timeout_seconds() const noexcept { return EventHandlerError::timeout_seconds(); }
};

/// The handler never started: event timeout, ancestor, lost `first`, destroy.
class EventHandlerCancelledError : public EventHandlerError, public CancelledError {
 public:
  explicit EventHandlerCancelledError(const std::string& message, EventHandlerErrorInfo info = {});
  std::string_view type_name() const noexcept override;
};

/// The handler was running when it was cut short, by the causes of EventHandlerCancelledError.
class EventHandlerAbortedError : public EventHandlerError, public CancelledError {
 public:
  explicit EventHandlerAbortedError(const std::string& message, EventHandlerErrorInfo info = {});
  std::string_view type_name() const noexcept override;
};

/// The return value does not fit the event's result type (D-VRS-5), or a stored one does not decode (T-HND-24).
class EventHandlerResultSchemaError : public EventHandlerError {
 public:
  /// Unset values read as JSON null.
  explicit EventHandlerResultSchemaError(const std::string& message, EventHandlerErrorInfo info = {},
                                         std::shared_ptr<const boost::json::value> raw_value = {},
                                         std::shared_ptr<const boost::json::value> expected_schema = {});
  std::string_view type_name() const noexcept override;
  /// The rejected value. Lives as long as this error or a copy of it; include `abxbus/json.hpp` to touch it.
  const boost::json::value& raw_value() const noexcept;
  const boost::json::value& expected_schema() const noexcept;

 private:
  std::shared_ptr<const boost::json::value> raw_value_;
  std::shared_ptr<const boost::json::value> expected_schema_;
};

/// The payload does not fit a typed handler (D-TEV-6). `cause()` is the ValidationError.
class EventHandlerPayloadSchemaError : public EventHandlerError {
 public:
  explicit EventHandlerPayloadSchemaError(const std::string& message, EventHandlerErrorInfo info = {});
  std::string_view type_name() const noexcept override;
};

/// A handler would run inside itself too often (S-REG-17).
class EventHandlerRecursionError : public EventHandlerError {
 public:
  explicit EventHandlerRecursionError(const std::string& message, EventHandlerErrorInfo info = {}, int depth = 0);
  std::string_view type_name() const noexcept override;
  /// Ancestors on which the same handler ran.
  int depth() const noexcept { return depth_; }

 private:
  int depth_;
};

/// An accessor found several failed handlers (T-RES-5).
class EventHandlerErrors : public Error {
 public:
  /// `event_label` is the event in the message, `{event_type}#{last 4 of the id}`.
  EventHandlerErrors(std::string_view event_type, const Uuid& event_id, std::vector<std::exception_ptr> errors,
                     std::string_view event_label);
  std::string_view type_name() const noexcept override;
  const std::string& event_type() const noexcept { return info_->event_type; }
  const Uuid& event_id() const noexcept { return info_->event_id; }
  /// In the order of T-RES-10.
  const std::vector<std::exception_ptr>& errors() const noexcept { return info_->errors; }

 private:
  struct Info {
    std::string event_type;
    Uuid event_id;
    std::vector<std::exception_ptr> errors;
  };
  std::shared_ptr<const Info> info_;
};

/// An accessor with `raise_if_none` found nothing to include (T-RES-5).
class EventResultNoneError : public Error {
 public:
  EventResultNoneError(std::string_view event_type, const Uuid& event_id, std::string_view event_label);
  std::string_view type_name() const noexcept override;
  const std::string& event_type() const noexcept { return info_->event_type; }
  const Uuid& event_id() const noexcept { return info_->event_id; }

 private:
  struct Info {
    std::string event_type;
    Uuid event_id;
  };
  std::shared_ptr<const Info> info_;
};

/// The bus is gone or destroyed (S-DST-5, S-DST-7).
class EventBusDestroyedError : public Error {
 public:
  EventBusDestroyedError(std::string_view name, std::string_view id, std::string_view label,
                         std::string_view operation);
  std::string_view type_name() const noexcept override;
  const std::string& eventbus_name() const noexcept { return info_->name; }
  const std::string& eventbus_id() const noexcept { return info_->id; }
  const std::string& eventbus_label() const noexcept { return info_->label; }
  /// Name of the function that was called (`emit`).
  const std::string& operation() const noexcept { return info_->operation; }

 private:
  struct Info {
    std::string name;
    std::string id;
    std::string label;
    std::string operation;
  };
  std::shared_ptr<const Info> info_;
};

/// Emit on a full bus that drops nothing (H-HIST-10).
class EventBusHistoryLimitError : public Error {
 public:
  EventBusHistoryLimitError(std::string_view label, std::string_view event_type, std::size_t size, std::size_t limit);
  std::string_view type_name() const noexcept override;
  const std::string& eventbus_label() const noexcept { return info_->label; }
  const std::string& event_type() const noexcept { return info_->event_type; }
  std::size_t size() const noexcept { return info_->size; }
  std::size_t limit() const noexcept { return info_->limit; }

 private:
  struct Info {
    std::string label;
    std::string event_type;
    std::size_t size;
    std::size_t limit;
  };
  std::shared_ptr<const Info> info_;
};

/// The `type` of an error on the wire (D-ERR-2): `type_name()` of the library's own, the unqualified class name without
/// template arguments of any other `std::exception`, else `Exception`. Empty for a null pointer. Any thread.
std::string error_type_name(std::exception_ptr error);

/// The `message` of an error on the wire (D-ERR-2): `what()`, the text of a thrown string, else `unknown exception`.
/// Empty for a null pointer. Any thread.
std::string error_message(std::exception_ptr error);

}  // namespace abxbus

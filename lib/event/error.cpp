#include <abxbus/error.hpp>

#include <boost/json/value.hpp>

#include <cstdlib>
#include <cxxabi.h>
#include <typeinfo>
#include <utility>

namespace abxbus {
namespace {

std::string joined(std::string_view event_label, const std::vector<std::exception_ptr>& errors) {
  std::string text = "Event ";
  text.append(event_label).append(" had ").append(std::to_string(errors.size())).append(" handler error(s): ");
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (i > 0) text += "; ";
    text += error_message(errors[i]);
  }
  return text;
}

std::string history_limit_text(std::string_view label, std::string_view event_type, std::size_t size,
                               std::size_t limit) {
  std::string text(label);
  text.append(".emit(").append(event_type).append(") rejected: history limit reached (");
  text.append(std::to_string(size)).append("/").append(std::to_string(limit));
  text.append("); set event_history.max_history_drop=true to drop old history instead.");
  return text;
}

const boost::json::value& value_or_null(const std::shared_ptr<const boost::json::value>& value) noexcept {
  static const boost::json::value null;
  return value ? *value : null;
}

std::string demangled(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text ? text.get() : "";
}

bool name_character(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || byte >= 0x80;
}

/// The last component of a qualified name, without template arguments. Read from the end, where no function signature
/// of an enclosing function can be in the way. Empty when there is none.
std::string_view unqualified(std::string_view name) noexcept {
  // Mark of a class with another layout of strings: failure[abi:cxx11].
  while (name.ends_with(']')) name = name.substr(0, name.rfind('['));
  if (name.ends_with('>')) {
    std::size_t begin = name.size();
    for (int depth = 0; begin > 0;) {
      --begin;
      if (name[begin] == '>') ++depth;
      if (name[begin] == '<' && --depth == 0) break;
    }
    name = name.substr(0, begin);
  }
  std::size_t begin = name.size();
  while (begin > 0 && name_character(name[begin - 1])) --begin;
  return name.substr(begin);
}

/// Whether it is the name of a class of error.hpp.
bool library_name(std::string_view name) noexcept {
  for (const std::string_view known :
       {"Error", "ValidationError", "TimeoutError", "CancelledError", "OperationCancelled", "EventHandlerError",
        "EventHandlerTimeoutError", "EventHandlerCancelledError", "EventHandlerAbortedError",
        "EventHandlerResultSchemaError", "EventHandlerPayloadSchemaError", "EventHandlerRecursionError",
        "EventHandlerErrors", "EventResultNoneError", "EventBusDestroyedError", "EventBusHistoryLimitError"})
    if (name == known) return true;
  return false;
}

/// `own_name` is the object's `type_name()`, empty where it has none. A class that a user derived from one of ours and
/// that does not override `type_name()` goes by its own name.
std::string name_of(const std::exception& error, std::string_view own_name) {
  if (!own_name.empty() && !library_name(own_name)) return std::string(own_name);
  const std::string qualified = demangled(typeid(error));
  const std::string_view name = unqualified(qualified);
  if (!name.empty()) return std::string(name);
  return own_name.empty() ? "Exception" : std::string(own_name);
}

}  // namespace

ValidationError::ValidationError(const std::string& message, std::string_view field)
    : std::invalid_argument(message), field_(std::make_shared<const std::string>(field)) {}
std::string_view ValidationError::type_name() const noexcept {
  return "ValidationError";
}

Error::Error(const std::string& message) : std::runtime_error(message) {}
std::string_view Error::type_name() const noexcept {
  return "Error";
}

TimeoutError::TimeoutError(const std::string& message, std::optional<Seconds> timeout_seconds)
    : Error(message), timeout_seconds_(timeout_seconds) {}
std::string_view TimeoutError::type_name() const noexcept {
  return "TimeoutError";
}

CancelledError::CancelledError(const std::string& message) : Error(message) {}
std::string_view CancelledError::type_name() const noexcept {
  return "CancelledError";
}

OperationCancelled::OperationCancelled(const std::string& message) : Error(message), CancelledError(message) {}
std::string_view OperationCancelled::type_name() const noexcept {
  return "OperationCancelled";
}

EventHandlerError::EventHandlerError(const std::string& message, EventHandlerErrorInfo info)
    : Error(message), info_(std::make_shared<const EventHandlerErrorInfo>(std::move(info))) {}
std::string_view EventHandlerError::type_name() const noexcept {
  return "EventHandlerError";
}

EventHandlerTimeoutError::EventHandlerTimeoutError(const std::string& message, EventHandlerErrorInfo info)
    : Error(message),
      EventHandlerError(message, std::move(info)),
      TimeoutError(message, EventHandlerError::timeout_seconds()) {}
std::string_view EventHandlerTimeoutError::type_name() const noexcept {
  return "EventHandlerTimeoutError";
}

EventHandlerCancelledError::EventHandlerCancelledError(const std::string& message, EventHandlerErrorInfo info)
    : Error(message), EventHandlerError(message, std::move(info)), CancelledError(message) {}
std::string_view EventHandlerCancelledError::type_name() const noexcept {
  return "EventHandlerCancelledError";
}

EventHandlerAbortedError::EventHandlerAbortedError(const std::string& message, EventHandlerErrorInfo info)
    : Error(message), EventHandlerError(message, std::move(info)), CancelledError(message) {}
std::string_view EventHandlerAbortedError::type_name() const noexcept {
  return "EventHandlerAbortedError";
}

EventHandlerResultSchemaError::EventHandlerResultSchemaError(const std::string& message, EventHandlerErrorInfo info,
                                                             std::shared_ptr<const boost::json::value> raw_value,
                                                             std::shared_ptr<const boost::json::value> expected_schema)
    : Error(message),
      EventHandlerError(message, std::move(info)),
      raw_value_(std::move(raw_value)),
      expected_schema_(std::move(expected_schema)) {}
std::string_view EventHandlerResultSchemaError::type_name() const noexcept {
  return "EventHandlerResultSchemaError";
}
const boost::json::value& EventHandlerResultSchemaError::raw_value() const noexcept {
  return value_or_null(raw_value_);
}
const boost::json::value& EventHandlerResultSchemaError::expected_schema() const noexcept {
  return value_or_null(expected_schema_);
}

EventHandlerPayloadSchemaError::EventHandlerPayloadSchemaError(const std::string& message, EventHandlerErrorInfo info)
    : Error(message), EventHandlerError(message, std::move(info)) {}
std::string_view EventHandlerPayloadSchemaError::type_name() const noexcept {
  return "EventHandlerPayloadSchemaError";
}

EventHandlerRecursionError::EventHandlerRecursionError(const std::string& message, EventHandlerErrorInfo info,
                                                       int depth)
    : Error(message), EventHandlerError(message, std::move(info)), depth_(depth) {}
std::string_view EventHandlerRecursionError::type_name() const noexcept {
  return "EventHandlerRecursionError";
}

EventHandlerErrors::EventHandlerErrors(std::string_view event_type, const Uuid& event_id,
                                       std::vector<std::exception_ptr> errors, std::string_view event_label)
    : Error(joined(event_label, errors)),
      info_(std::make_shared<const Info>(Info{std::string(event_type), event_id, std::move(errors)})) {}
std::string_view EventHandlerErrors::type_name() const noexcept {
  return "EventHandlerErrors";
}

EventResultNoneError::EventResultNoneError(std::string_view event_type, const Uuid& event_id,
                                           std::string_view event_label)
    : Error("Expected at least one handler to return a non-null result, but none did: " + std::string(event_label)),
      info_(std::make_shared<const Info>(Info{std::string(event_type), event_id})) {}
std::string_view EventResultNoneError::type_name() const noexcept {
  return "EventResultNoneError";
}

EventBusDestroyedError::EventBusDestroyedError(std::string_view name, std::string_view id, std::string_view label,
                                               std::string_view operation)
    : Error(std::string(label) + " has been destroyed and cannot be used again"),
      info_(std::make_shared<const Info>(
          Info{std::string(name), std::string(id), std::string(label), std::string(operation)})) {}
std::string_view EventBusDestroyedError::type_name() const noexcept {
  return "EventBusDestroyedError";
}

EventBusHistoryLimitError::EventBusHistoryLimitError(std::string_view label, std::string_view event_type,
                                                     std::size_t size, std::size_t limit)
    : Error(history_limit_text(label, event_type, size, limit)),
      info_(std::make_shared<const Info>(Info{std::string(label), std::string(event_type), size, limit})) {}
std::string_view EventBusHistoryLimitError::type_name() const noexcept {
  return "EventBusHistoryLimitError";
}

std::string error_type_name(std::exception_ptr error) {
  if (!error) return {};
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Error& e) {
    return name_of(e, e.type_name());
  } catch (const ValidationError& e) {
    return name_of(e, e.type_name());
  } catch (const std::exception& e) {
    return name_of(e, {});
  } catch (...) {
    return "Exception";
  }
}

std::string error_message(std::exception_ptr error) {
  if (!error) return {};
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& e) {
    const char* text = e.what();
    return text != nullptr ? text : "";
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text != nullptr ? text : "unknown exception";
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace abxbus

#pragma once

/// What tests of results, errors and time limits share. No Catch2 here.

#include "testing.hpp"

#include <abxbus/abxbus.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace testing {

/// Opens gates at the end of a scope, also when an assertion failed. Declare it after the bus whose handlers wait at
/// them, so that it comes before the bus's destructor.
class OpenAtEnd {
 public:
  template <class... Gates>
  explicit OpenAtEnd(Gates&... gates) : gates_{&gates...} {}
  OpenAtEnd(const OpenAtEnd&) = delete;
  OpenAtEnd& operator=(const OpenAtEnd&) = delete;
  ~OpenAtEnd() {
    for (Gate* gate : gates_) gate->open();
  }

 private:
  std::vector<Gate*> gates_;
};

/// Starts when it is made.
class Stopwatch {
 public:
  double seconds() const { return seconds_since(start_); }

 private:
  Clock::time_point start_ = Clock::now();
};

/// Time limits are measured with one clock and asserted with another: this much may lie between them.
inline constexpr double clock_slack = 0.002;
/// Upper bound of what is to happen "promptly" (T-CNV-6), on a machine that others use too.
inline constexpr double promptly = 2.0;

/// Seconds as a number, -1 when unset.
inline double number(std::optional<abxbus::Seconds> value) {
  return value ? value->count() : -1.0;
}

/// The error as `E`, null when it is none. Valid as long as the exception is referred to.
template <class E>
const E* error_as(const std::exception_ptr& error) {
  if (!error) return nullptr;
  try {
    std::rethrow_exception(error);
  } catch (const E& caught) {
    return &caught;
  } catch (...) {
    return nullptr;
  }
}

/// What a call throws, null when it returns.
template <class F>
std::exception_ptr thrown_by(F&& call) {
  try {
    call();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// "completed", or the type of the error, or the status of what is not settled; one a result, in creation order.
inline std::string outcome(const abxbus::EventResult& result) {
  switch (result.status()) {
    case abxbus::EventResultStatus::pending:
      return "pending";
    case abxbus::EventResultStatus::started:
      return "started";
    case abxbus::EventResultStatus::completed:
      return "completed";
    case abxbus::EventResultStatus::error:
      return result.error_type();
  }
  return "?";
}
inline std::vector<std::string> outcomes(const abxbus::BaseEvent& event) {
  std::vector<std::string> texts;
  for (const auto& result : event.event_results()) texts.push_back(outcome(result));
  return texts;
}

/// The result of the handler with that name; fails loudly when there is none.
inline abxbus::EventResult result_of(const abxbus::BaseEvent& event, const std::string& handler_name) {
  for (const auto& result : event.event_results())
    if (result.handler_name() == handler_name) return result;
  throw std::out_of_range("no result of handler " + handler_name);
}

inline std::string last4(const std::string& text) {
  return text.size() < 4 ? text : text.substr(text.size() - 4);
}

/// `{event}` of a message (D-LBL-3).
inline std::string event_label(const abxbus::BaseEvent& event) {
  return event.event_type() + "#" + last4(event.event_id().str());
}
/// `{handler_label}` of a message (D-LBL-2).
inline std::string handler_label(const abxbus::EventResult& result) {
  return result.handler_name() + "#" + last4(result.handler_id());
}
/// `{handler}` of a message (D-LBL-2).
inline std::string handler_text(const abxbus::EventResult& result) {
  const std::string name = result.handler_name();
  const std::string text = name == "anonymous" ? "function#" + last4(result.handler_id()) + "()" : name + "()";
  const auto path = result.handler_file_path();
  return path ? text + " @ " + *path : text;
}
/// `{bus_label}.on({event}, {handler})` of a message.
inline std::string run_text(const abxbus::EventBusRef& bus, const abxbus::BaseEvent& event,
                            const abxbus::EventResult& result) {
  return bus.label() + ".on(" + event_label(event) + ", " + handler_text(result) + ")";
}

/// Blocks a handler until its run is asked to stop; false when that does not happen in time.
inline bool wait_until_stopped(const std::stop_token& token, Clock::duration limit = patience) {
  return eventually([&] { return token.stop_requested(); }, limit);
}

}  // namespace testing

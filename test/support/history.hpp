#pragma once

/// Short words for tests that look at lists of events. No Catch2 here.

#include "testing.hpp"

#include <abxbus/abxbus.hpp>

#include <string_view>
#include <vector>

namespace testing {

/// Swallows what the library logs while it lives: for tests whose handlers fail thousands of times.
class QuietLog {
 public:
  QuietLog() {
    abxbus::set_log_sink([](abxbus::LogLevel, std::string_view) {});
  }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
  ~QuietLog() { abxbus::set_log_sink({}); }
};

/// The ids of the events, in their order.
inline std::vector<abxbus::Uuid> ids_of(const std::vector<abxbus::BaseEvent>& events) {
  std::vector<abxbus::Uuid> ids;
  for (const auto& event : events) ids.push_back(event.event_id());
  return ids;
}

/// The member `number` of each event, in their order.
template <class T>
std::vector<int> numbers_of(const std::vector<abxbus::BaseEvent>& events) {
  std::vector<int> numbers;
  for (const auto& event : events) numbers.push_back(event.payload_as<T>().number);
  return numbers;
}

/// Waits for the event's completion; throws when it does not come in time.
template <class E>
const E& settled(const E& event) {
  event.wait({.timeout = patience});
  return event;
}

/// A creation time that long ago.
inline abxbus::Timestamp created_before(std::chrono::milliseconds age) {
  return abxbus::Timestamp(std::chrono::system_clock::now() - age);
}

}  // namespace testing

#pragma once

#include "bus/core.hpp"

#include <abxbus/modes.hpp>

#include <cmath>

/// Which level decides an option (S-PREC): the instance, then its type (both in the record's option fields), then the
/// bus that processes the event. Nothing is ever written back to the event.
namespace abxbus::detail {

inline EventConcurrency resolve_concurrency(const Record* record, const BusCore* bus) noexcept {
  return option_fields(record).event_concurrency.value_or(bus->options.event_concurrency);
}
inline EventHandlerConcurrency resolve_handler_concurrency(const Record* record, const BusCore* bus) noexcept {
  return option_fields(record).event_handler_concurrency.value_or(bus->options.handler_concurrency);
}
inline EventHandlerCompletion resolve_completion(const Record* record, const BusCore* bus) noexcept {
  return option_fields(record).event_handler_completion.value_or(bus->options.handler_completion);
}

/// Seconds as nanoseconds; saturates far away.
inline std::int64_t nanoseconds(Seconds seconds) noexcept {
  const double ns = seconds.count() * 1e9;
  if (!(ns < 9e18)) return INT64_MAX / 2;
  return ns <= 0 ? 0 : static_cast<std::int64_t>(ns + 0.5);
}
inline std::int64_t resolve_ns(const std::optional<Seconds>& event, std::int64_t bus_ns) noexcept {
  return event ? nanoseconds(*event) : bus_ns;
}
inline std::int64_t resolve_event_timeout(const Record* record, const BusCore* bus) noexcept {
  return resolve_ns(option_fields(record).event_timeout, bus->options.event_timeout_ns);
}
inline std::int64_t resolve_event_slow(const Record* record, const BusCore* bus) noexcept {
  return resolve_ns(option_fields(record).event_slow_timeout, bus->options.event_slow_ns);
}

}  // namespace abxbus::detail

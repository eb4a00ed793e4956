#pragma once

#include <chrono>
#include <concepts>
#include <string_view>

namespace abxbus {

/// Every duration of the library: seconds (T-CNV-1). Any `std::chrono` duration converts implicitly.
using Seconds = std::chrono::duration<double>;

/// Life of an event. There is no error status: a failed handler is recorded on its result.
enum class EventStatus { pending, started, completed };

/// How events of a bus run beside each other: one at a time in the whole domain, one at a time on the bus, or freely.
enum class EventConcurrency { global_serial, bus_serial, parallel };

/// How the handlers of one event run on one bus.
enum class EventHandlerConcurrency { serial, parallel };

/// When the handlers of one event are done on one bus: all of them, or the first with a usable value.
enum class EventHandlerCompletion { all, first };

/// Life of a handler run's record. `completed` and `error` are terminal.
enum class EventResultStatus { pending, started, completed, error };

/// The enumerations that have a text form.
template <class E>
concept wire_enum =
    std::same_as<E, EventStatus> || std::same_as<E, EventConcurrency> || std::same_as<E, EventHandlerConcurrency> ||
    std::same_as<E, EventHandlerCompletion> || std::same_as<E, EventResultStatus>;

/// The text form, as in JSON (`bus-serial`). The text lives for ever. Empty for a value that is none of the
/// enumerators.
template <wire_enum E>
std::string_view to_string(E value) noexcept;

/// The value of a text form. Case and spelling are exact. ValidationError, naming the field, for anything else
/// (S-BUS-5).
template <wire_enum E>
E from_string(std::string_view text);

template <>
std::string_view to_string(EventStatus value) noexcept;
template <>
std::string_view to_string(EventConcurrency value) noexcept;
template <>
std::string_view to_string(EventHandlerConcurrency value) noexcept;
template <>
std::string_view to_string(EventHandlerCompletion value) noexcept;
template <>
std::string_view to_string(EventResultStatus value) noexcept;

template <>
EventStatus from_string(std::string_view text);
template <>
EventConcurrency from_string(std::string_view text);
template <>
EventHandlerConcurrency from_string(std::string_view text);
template <>
EventHandlerCompletion from_string(std::string_view text);
template <>
EventResultStatus from_string(std::string_view text);

}  // namespace abxbus

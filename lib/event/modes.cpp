#include <abxbus/error.hpp>
#include <abxbus/modes.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace abxbus {
namespace {

/// The texts of an enumeration, in the order of its enumerators, and what a wrong one is answered with.
template <std::size_t Count>
struct Texts {
  std::string_view field;
  std::string_view choice;
  std::array<std::string_view, Count> names;

  template <class E>
  std::string_view text(E value) const noexcept {
    const auto index = static_cast<std::size_t>(value);
    return index < Count ? names[index] : std::string_view{};
  }
  template <class E>
  E value(std::string_view text) const {
    for (std::size_t i = 0; i < Count; ++i)
      if (names[i] == text) return static_cast<E>(i);
    std::string message(field);
    message.append(" must be ").append(choice).append(", got: ").append(text);
    throw ValidationError(message, field);
  }
};

constexpr Texts<3> statuses{
    "event_status", R"("pending", "started", or "completed")", {"pending", "started", "completed"}};
constexpr Texts<3> concurrencies{"event_concurrency",
                                 R"("global-serial", "bus-serial", or "parallel")",
                                 {"global-serial", "bus-serial", "parallel"}};
constexpr Texts<2> handler_concurrencies{
    "event_handler_concurrency", R"("serial" or "parallel")", {"serial", "parallel"}};
constexpr Texts<2> handler_completions{"event_handler_completion", R"("all" or "first")", {"all", "first"}};
constexpr Texts<4> result_statuses{
    "status", R"("pending", "started", "completed", or "error")", {"pending", "started", "completed", "error"}};

}  // namespace

template <>
std::string_view to_string(EventStatus value) noexcept {
  return statuses.text(value);
}
template <>
std::string_view to_string(EventConcurrency value) noexcept {
  return concurrencies.text(value);
}
template <>
std::string_view to_string(EventHandlerConcurrency value) noexcept {
  return handler_concurrencies.text(value);
}
template <>
std::string_view to_string(EventHandlerCompletion value) noexcept {
  return handler_completions.text(value);
}
template <>
std::string_view to_string(EventResultStatus value) noexcept {
  return result_statuses.text(value);
}

template <>
EventStatus from_string(std::string_view text) {
  return statuses.value<EventStatus>(text);
}
template <>
EventConcurrency from_string(std::string_view text) {
  return concurrencies.value<EventConcurrency>(text);
}
template <>
EventHandlerConcurrency from_string(std::string_view text) {
  return handler_concurrencies.value<EventHandlerConcurrency>(text);
}
template <>
EventHandlerCompletion from_string(std::string_view text) {
  return handler_completions.value<EventHandlerCompletion>(text);
}
template <>
EventResultStatus from_string(std::string_view text) {
  return result_statuses.value<EventResultStatus>(text);
}

}  // namespace abxbus

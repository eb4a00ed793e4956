#pragma once

#include <abxbus/event.hpp>
#include <abxbus/event_bus.hpp>
#include <abxbus/modes.hpp>

#include <optional>
#include <stop_token>
#include <string>

namespace abxbus {

/// What the handler that runs on this thread is working on; nothing outside handlers (H-LIN-8). Coroutine handlers
/// carry it across suspension.
std::optional<BaseEvent> get_current_event();
std::optional<std::string> get_current_handler_id();
std::optional<EventBusRef> get_current_eventbus();
bool in_handler_context() noexcept;

namespace this_handler {

/// The run's token: stopped when the run's result became terminal while it was running (T-CAN-1, T-CAN-3). Outside
/// handlers a token that never stops.
std::stop_token stop_token();
bool stop_requested() noexcept;
/// Throws OperationCancelled when the run has been cut short.
void throw_if_stopped();
/// Sleeps; throws OperationCancelled as soon as the run is cut short (T-CAN-10). Outside handlers it only sleeps.
void sleep_for(Seconds duration);

}  // namespace this_handler
}  // namespace abxbus

#include "bus/core.hpp"
#include "bus/resolve.hpp"
#include "bus/run.hpp"
#include "bus/waiting.hpp"
#include "event/futex.hpp"

#include <abxbus/context.hpp>
#include <abxbus/error.hpp>

namespace abxbus {

using namespace detail;

std::optional<BaseEvent> get_current_event() {
  if (current_frame == nullptr) return std::nullopt;
  return BaseEvent(RecordPtr::share(current_frame->record));
}
std::optional<std::string> get_current_handler_id() {
  if (current_frame == nullptr) return std::nullopt;
  return entry_id(*current_frame->result->entry);
}
std::optional<EventBusRef> get_current_eventbus() {
  if (current_frame == nullptr) return std::nullopt;
  retain_core(current_frame->bus);
  return EventBusRef(current_frame->bus);
}
bool in_handler_context() noexcept {
  return current_frame != nullptr;
}

namespace this_handler {

std::stop_token stop_token() {
  return current_frame != nullptr ? current_frame->stop_token() : std::stop_token();
}
bool stop_requested() noexcept {
  return current_frame != nullptr && current_frame->stale();
}
void throw_if_stopped() {
  if (stop_requested()) throw OperationCancelled("the handler was cut short");
}

void sleep_for(Seconds duration) {
  if (!(duration.count() > 0)) {
    throw_if_stopped();
    return;
  }
  const std::int64_t deadline = steady_ns() + nanoseconds(duration);
  std::atomic<std::uint32_t> stopped{0};
  const CallCancellation cancellation({}, [&] {
    stopped.store(1, std::memory_order_release);
    futex_wake(stopped, 1);
  });
  const WaitScope blocked;
  while (stopped.load(std::memory_order_acquire) == 0 && steady_ns() < deadline) futex_wait(stopped, 0, deadline);
  if (stopped.load(std::memory_order_acquire) != 0) throw OperationCancelled("the handler was cut short");
}

}  // namespace this_handler
}  // namespace abxbus

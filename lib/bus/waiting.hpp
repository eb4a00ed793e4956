#pragma once

#include "bus/completion.hpp"
#include "bus/run.hpp"

#include <abxbus/options.hpp>

#include <functional>
#include <memory>
#include <stop_token>

/// Waiting for events: now, wait, accessors, and their awaitable forms.
namespace abxbus::detail {

/// Ends a wait for another reason than its event: `cancelled` wins over a later signal.
bool cancel_waiter(Record* record, Waiter& waiter) noexcept;

/// Validates a call's options; the deadline on CLOCK_MONOTONIC, no_deadline for none.
std::int64_t wait_deadline(const WaitOptions& options);

class Jump;

/// Blocks until the event is completed (or has a usable value). `jump`: goes on with it meanwhile.
void wait_for_event(Record* record, const WaitOptions& options, std::int64_t deadline, Jump* jump = nullptr);
/// Runs the event ahead of the queue on every bus where it has not started, and blocks like wait_for_event.
void jump_and_wait(Record* record, const WaitOptions& options, std::int64_t deadline);
/// The call has returned normally (T-RES-23).
void note_first_seen(Record* record, const WaitOptions& options) noexcept;

/// make_blocking inside the emitting handler; undone when that handler has been cut short meanwhile, for then nobody
/// cancels the child (bus/cancel.hpp).
void make_blocking_unless_stale(Record* child) noexcept;
/// The child that the current handler emitted becomes one that its parent waits for (H-LIN-10).
void mark_awaited(Record* record) noexcept;

/// Throws what now() and wait() throw before they do anything. True: the event is completed already.
bool check_waitable(Record* record, const char* operation);

/// Links the waiter and sleeps until it is told, cancelled or timed out; the waiter's state says which.
void sleep_on(Record* record, Waiter& waiter, const std::stop_token& stop, std::int64_t deadline, Jump* jump = nullptr);

/// Cancels a blocking call when the handler that made it is cut short, or its stop token is stopped.
class CallCancellation {
 public:
  CallCancellation(const std::stop_token& token, const std::function<void()>& cancel);

 private:
  using Callback = std::stop_callback<std::function<void()>>;
  std::unique_ptr<Callback> own_;
  std::unique_ptr<Callback> handler_;
};

}  // namespace abxbus::detail

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

/// Blocks until the event is completed (or has a usable value). `text`: what the timeout message says was waited for.
void wait_for_event(Record* record, const WaitOptions& options, std::int64_t deadline);

/// The child that the current handler emitted becomes one that its parent waits for (H-LIN-10).
void mark_awaited(Record* record) noexcept;

/// Claims and runs (or hands over) the event on every bus where it has not started (S-JMP).
void jump(Record* record, const WaitOptions& options, bool may_run_here) noexcept;

/// Throws what now() and wait() throw before they do anything. True: the event is completed already.
bool check_waitable(Record* record, const char* operation);

/// Links the waiter and sleeps until it is told, cancelled or timed out; the waiter's state says which.
void sleep_on(Record* record, Waiter& waiter, const std::stop_token& stop, std::int64_t deadline);

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

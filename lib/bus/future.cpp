#include "bus/core.hpp"
#include "bus/emit.hpp"
#include "bus/run.hpp"
#include "bus/waiting.hpp"
#include "event/futex.hpp"

#include <abxbus/detail/coroutine.hpp>
#include <abxbus/error.hpp>

namespace abxbus::detail {

namespace {

/// Resumes a coroutine on a thread of the pool, with the handler it belongs to as the current one.
struct ResumeJob : Job {
  std::coroutine_handle<> handle;
  ExecFrame* frame = nullptr;
};

void resume(Job* job) noexcept {
  auto* const resumption = static_cast<ResumeJob*>(job);
  const std::coroutine_handle<> handle = resumption->handle;
  ExecFrame* const outer = std::exchange(current_frame, resumption->frame);
  delete resumption;
  handle.resume();
  current_frame = outer;
}

}  // namespace

void throw_if_cut_short() {
  if (caller_is_stale()) throw OperationCancelled("the handler that awaits was cut short");
}

void FutureState::complete() noexcept {
  if (state_.exchange(done, std::memory_order_acq_rel) != waiting) {
    futex_wake(state_, INT32_MAX);
    return;
  }
  auto* const job = new ResumeJob;
  job->run = &resume;
  job->handle = continuation_;
  job->frame = frame_;
  if (frame_ != nullptr) {
    push_ready(frame_->bus, job);
  } else {
    default_pool().submit(job);
  }
}

bool FutureState::suspend(std::coroutine_handle<> self) {
  continuation_ = self;
  frame_ = current_frame;
  std::uint32_t expected = empty;
  return state_.compare_exchange_strong(expected, waiting, std::memory_order_acq_rel, std::memory_order_acquire);
}

void FutureState::wait() {
  if (ready()) return;
  const WaitScope blocked;
  while (!ready()) futex_wait(state_, empty, no_deadline);
}

bool FutureState::wait_for(Seconds timeout) {
  if (ready()) return true;
  WaitOptions options;
  options.timeout = timeout.count() > 0 ? timeout : Seconds(1e-9);
  const std::int64_t deadline = wait_deadline(options);
  const WaitScope blocked;
  while (!ready()) {
    if (steady_ns() >= deadline) return false;
    futex_wait(state_, empty, deadline);
  }
  return true;
}

}  // namespace abxbus::detail

#pragma once

#include <abxbus/detail/record_head.hpp>
#include <abxbus/detail/value.hpp>
#include <abxbus/modes.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace abxbus::detail {

struct ExecFrame;

/// Coroutine frames come from the library's counted memory.
struct CountedFrame {
  static void* operator new(std::size_t bytes) { return allocate_value(bytes); }
  static void operator delete(void* frame) noexcept { free_value(frame); }
};

/// Shared state of a `future`. Completed once; one consumer, a thread or a coroutine.
///
/// state_: EMPTY -> DONE (completed before anybody waited), EMPTY -> WAITING (a coroutine is registered) -> DONE.
/// The completer's exchange to DONE (acq_rel) and the consumer's compare-exchange EMPTY -> WAITING (acq_rel) are on
/// one word, so exactly one of "consumer sees the result" and "completer resumes the consumer" happens. A thread
/// that blocks in `wait` waits on the same word.
class FutureState {
 public:
  virtual ~FutureState() = default;
  bool ready() const noexcept { return state_.load(std::memory_order_acquire) == done; }
  void wait();
  bool wait_for(Seconds timeout);
  /// Registers the coroutine; false when the result is there already. The coroutine is resumed on a pool thread.
  bool suspend(std::coroutine_handle<> self);
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  /// The consumer is gone: withdraw from whatever this waits for.
  virtual void abandon() noexcept {}

  RecordPtr event;    ///< the event of now/wait/find; empty: no match
  bool flag = false;  ///< wait_until_idle
  Value value;        ///< typed results
  void complete() noexcept;
  void fail(std::exception_ptr error) noexcept {
    error_ = std::move(error);
    complete();
  }

  void retain() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  static constexpr std::uint32_t empty = 0, waiting = 1, done = 2;
  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> state_{empty};
  std::coroutine_handle<> continuation_;
  ExecFrame* frame_ = nullptr;  ///< handler that awaits, re-installed when it resumes
  std::exception_ptr error_;
};

/// An await is a cancellation point (T-CAN-11): throws OperationCancelled when the awaiting handler was cut short.
void throw_if_cut_short();

/// The consumer's reference.
class FuturePtr {
 public:
  explicit FuturePtr(FutureState* adopted) noexcept : state_(adopted) {}
  FuturePtr(FuturePtr&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  FuturePtr& operator=(FuturePtr&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~FuturePtr() {
    if (state_ == nullptr) return;
    state_->abandon();
    state_->release();
  }
  FutureState* operator->() const noexcept { return state_; }
  FutureState& operator*() const noexcept { return *state_; }

 private:
  FutureState* state_;
};

/// The root of a coroutine handler: awaits the handler's task and hands its outcome to the run.
class RootTask {
 public:
  struct promise_type : CountedFrame {
    RootTask get_return_object() noexcept { return RootTask(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct final_awaiter {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> self) const noexcept;
      void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() const noexcept { return {}; }
    void return_value(Value value) noexcept { outcome = std::move(value); }
    void unhandled_exception() noexcept { error = std::current_exception(); }

    Value outcome;
    std::exception_ptr error;
    ExecFrame* frame = nullptr;
  };
  std::coroutine_handle<promise_type> handle() const noexcept { return handle_; }

 private:
  explicit RootTask(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace abxbus::detail

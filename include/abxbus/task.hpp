#pragma once

#include <abxbus/detail/coroutine.hpp>
#include <abxbus/fwd.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>
#include <variant>

namespace abxbus {

/// A lazy coroutine: starts when awaited, or when the bus runs it as a handler (S-REG-10). Movable, awaited once.
/// A suspended handler holds no thread. Its frame is counted as memory of the bus that runs it.
/// Captures: a coroutine lambda registered with `on` lives in the registration and outlives its runs (S-REG-16).
///
/// Compiler: g++ 12 copies the bytes of an aggregate that is made inside a co_await expression, without its
/// constructors. So `co_await event.emit(Paid{"x"}).now_async()` hands over a broken string there. Emit in a statement
/// of its own:
///   auto paid = event.emit(Paid{"x"});
///   co_await paid.now_async();
template <class T>
class [[nodiscard]] task {
 public:
  class promise_type;
  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~task() {
    if (handle_) handle_.destroy();
  }

  class awaiter {
   public:
    explicit awaiter(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) noexcept {
      handle_.promise().set_continuation(continuation);
      return handle_;
    }
    T await_resume() { return handle_.promise().take(); }

   private:
    std::coroutine_handle<promise_type> handle_;
  };
  awaiter operator co_await() && noexcept { return awaiter(handle_); }

 private:
  explicit task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template <class T>
class TaskPromiseBase : public CountedFrame {
 public:
  struct final_awaiter {
    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) noexcept {
      auto next = self.promise().continuation_;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  final_awaiter final_suspend() const noexcept { return {}; }
  void set_continuation(std::coroutine_handle<> continuation) noexcept { continuation_ = continuation; }

 private:
  std::coroutine_handle<> continuation_;
};

}  // namespace detail

template <class T>
class task<T>::promise_type : public detail::TaskPromiseBase<T> {
 public:
  task get_return_object() noexcept { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
  void unhandled_exception() noexcept { result_.template emplace<2>(std::current_exception()); }
  template <class U>
  void return_value(U&& value) {
    result_.template emplace<1>(std::forward<U>(value));
  }
  T take() {
    if (result_.index() == 2) std::rethrow_exception(std::get<2>(result_));
    return std::move(std::get<1>(result_));
  }

 private:
  std::variant<std::monostate, T, std::exception_ptr> result_;
};

template <>
class task<void>::promise_type : public detail::TaskPromiseBase<void> {
 public:
  task get_return_object() noexcept { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }
  void return_void() const noexcept {}
  void take() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

/// The result of an `..._async` call, which has started when the call returns. Movable; consumed once, by `co_await`
/// inside a handler or by the blocking `get()`. Dropping it withdraws only the waiting, never the work.
template <class T>
class [[nodiscard]] future {
 public:
  /// Whether `get()` would return (or throw) at once.
  bool ready() const noexcept { return state_->ready(); }
  /// Waits at most that long; true when ready.
  bool wait_for(Seconds timeout) const { return state_->wait_for(timeout); }
  /// Blocks until the result is there; throws what the blocking form of the call throws.
  T get() {
    state_->wait();
    return finish();
  }

  class awaiter {
   public:
    explicit awaiter(future& owner) noexcept : owner_(owner) {}
    bool await_ready() const {
      if (owner_.state_->ready()) return true;
      detail::throw_if_cut_short();
      return false;
    }
    bool await_suspend(std::coroutine_handle<> self) {
      suspended_ = true;  // before: another thread may resume, and end, the coroutine at once
      if (owner_.state_->suspend(self)) return true;
      suspended_ = false;
      return false;
    }
    T await_resume() {
      if (suspended_) detail::throw_if_cut_short();
      return owner_.finish();
    }

   private:
    future& owner_;
    bool suspended_ = false;
  };
  awaiter operator co_await() && noexcept { return awaiter(*this); }
  awaiter operator co_await() & noexcept { return awaiter(*this); }

  /// Internal.
  using extract_fn = T (*)(detail::FutureState&);
  future(detail::FuturePtr state, extract_fn extract) noexcept : state_(std::move(state)), extract_(extract) {}
  /// Internal: the same wait with another view of its result.
  template <class U>
  future<U> as(U (*extract)(detail::FutureState&)) && noexcept {
    return future<U>(std::move(state_), extract);
  }

 private:
  T finish() {
    state_->rethrow();
    return extract_(*state_);
  }
  detail::FuturePtr state_;
  extract_fn extract_;
};

}  // namespace abxbus

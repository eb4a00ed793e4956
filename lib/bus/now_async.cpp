#include "bus/jump.hpp"
#include "bus/waiting.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/names.hpp"

#include <abxbus/error.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

/// now and wait for coroutines, and for whoever wants a future.
namespace abxbus::detail {

namespace {

/// The state behind now_async and wait_async. References: the consumer's, and one of the waiter while it is linked.
class EventFuture final : public FutureState {
 public:
  EventFuture(RecordHead* record, const WaitOptions& options) : record_(RecordPtr::share(record)), options_(options) {
    waiter_.wants = options.first_result ? Waiter::first_result : Waiter::completion;
    waiter_.owner = this;
    waiter_.notify = [](Waiter* waiter) noexcept { static_cast<EventFuture*>(waiter->owner)->signalled(); };
  }
  ~EventFuture() override = default;

  void start(std::int64_t deadline, bool jumps) {
    Record* const record = as_record(record_.get());
    if (jumps) {
      waiter_.jumps = true;
      jump_.emplace(record, options_, false);
      jump_->outlive_caller();
      look();
    }
    retain();  // the waiter's
    if (!link()) return;
    look();
    const auto cancel = [this] { end_early(WaiterState::cancelled); };
    cancellation_.emplace(options_.stop_token, cancel);
    if (deadline != no_deadline) {
      retain();  // the timer's
      expiry_.state = this;
      expiry_.run = &expire;
      timer_ = watchdog().arm(
          deadline,
          [](void* context) {
            auto* const self = static_cast<EventFuture*>(context);
            as_record(self->record_.get())->first_leg.bus->pool->submit(&self->expiry_, WorkerPool::Urgency::at_once);
          },
          this);
      timer_armed_ = true;
    }
  }
  void abandon() noexcept override {
    cancellation_.reset();
    if (timer_armed_ && watchdog().disarm(timer_)) release();
    WaiterState going_on = WaiterState::waiting;
    ending_.compare_exchange_strong(going_on, WaiterState::signalled, std::memory_order_seq_cst);
    if (unlink_waiter(as_record(record_.get()), waiter_)) release();
  }

 private:
  /// False: there is nothing to wait for, and the future has been told.
  bool link() noexcept {
    Record* const record = as_record(record_.get());
    if (link_waiter(record, waiter_)) return true;
    if ((record->flags.load(std::memory_order_acquire) & (flag_completed | flag_dropped)) == flag_dropped)
      waiter_.state.store(WaiterState::dropped, std::memory_order_relaxed);
    signalled();
    return false;
  }
  /// The jump's next step, by one thread at a time: a look that is asked for while another goes on is that one's.
  void look() noexcept {
    if (!jump_ || looks_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
    std::uint32_t seen = 1;
    do {
      jump_->go_on();
    } while (!looks_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel));
  }
  /// There are legs to look at again. On the pool: this begins runs, and whoever told us may be inside an emit.
  struct LookAgain : Job {
    EventFuture* state = nullptr;
  };
  static void look_again(Job* job) noexcept {
    EventFuture* const self = static_cast<LookAgain*>(job)->state;
    self->retain();  // once it is linked, the waiter's reference may go at any time
    self->waiter_.state.store(WaiterState::waiting, std::memory_order_relaxed);
    if (self->link()) {
      // Who wanted to end the wait while the waiter was not linked has met nothing to unlink, and left word (seq_cst
      // with link and unlink, which are read-modify-writes of one word).
      const WaiterState ending = self->ending_.load(std::memory_order_seq_cst);
      if (ending == WaiterState::waiting) {
        self->look();
      } else if (ending == WaiterState::signalled) {  // abandoned
        if (unlink_waiter(as_record(self->record_.get()), self->waiter_)) self->release();
      } else {
        self->end_early(ending);
      }
    }
    self->release();
  }

  /// The end of a wait that took too long: on the pool, since errors, and events that go with the last reference, are
  /// nothing for the watchdog's thread.
  struct Expiry : Job {
    EventFuture* state = nullptr;
  };
  static void expire(Job* job) noexcept {
    EventFuture* const self = static_cast<Expiry*>(job)->state;
    self->end_early(WaiterState::timed_out);
    self->release();
  }
  void end_early(WaiterState reason) noexcept {
    WaiterState going_on = WaiterState::waiting;
    ending_.compare_exchange_strong(going_on, reason, std::memory_order_seq_cst);
    if (!unlink_waiter(as_record(record_.get()), waiter_)) return;
    waiter_.state.store(reason, std::memory_order_release);
    signalled();
  }
  void signalled() noexcept {
    Record* const record = as_record(record_.get());
    switch (waiter_.state.load(std::memory_order_acquire)) {
      case WaiterState::look_again:
        again_.state = this;
        again_.run = &look_again;
        push_ready(record->first_leg.bus, &again_);
        return;  // with the waiter's reference
      case WaiterState::cancelled:
        fail(std::make_exception_ptr(OperationCancelled("the wait was stopped")));
        break;
      case WaiterState::timed_out:
        fail(
            std::make_exception_ptr(TimeoutError("Timed out waiting for " + std::string(type_name_of(record)) +
                                                     (options_.first_result ? " result after " : " completion after ") +
                                                     seconds_text(*options_.timeout) + "s",
                                                 options_.timeout)));
        break;
      case WaiterState::dropped:
        try {
          throw_destroyed(record->first_leg.bus, "now");
        } catch (...) {
          fail(std::current_exception());
        }
        break;
      case WaiterState::waiting:
      case WaiterState::signalled:
        note_first_seen(record, options_);
        event = record_;
        complete();
        break;
    }
    release();
  }

  Waiter waiter_;
  RecordPtr record_;
  WaitOptions options_;
  std::optional<Jump> jump_;
  std::atomic<std::uint32_t> looks_{0};
  /// Why the wait ends before its event, for a waiter that is not linked at that moment; `signalled`: abandoned.
  std::atomic<WaiterState> ending_{WaiterState::waiting};
  LookAgain again_;
  std::optional<CallCancellation> cancellation_;
  TimerHeap::Key timer_{};
  bool timer_armed_ = false;
  Expiry expiry_;
};

future<BaseEvent> start_async(RecordHead* head, const WaitOptions& options, bool jump_first) {
  Record* const record = as_record(head);
  auto* const state = new EventFuture(head, options);
  FuturePtr pointer(state);
  try {
    const std::int64_t deadline = wait_deadline(options);
    const bool completed = check_waitable(record, jump_first ? "now" : "wait");
    if (jump_first) mark_awaited(record);
    state->start(deadline, !completed && jump_first);
  } catch (...) {
    state->fail(std::current_exception());
  }
  return {std::move(pointer), [](FutureState& done) { return BaseEvent(take_event(done)); }};
}

}  // namespace

RecordPtr take_event(FutureState& state) noexcept {
  return std::move(state.event);
}

}  // namespace abxbus::detail

namespace abxbus {

future<BaseEvent> BaseEvent::now_async(WaitOptions options) const {
  return detail::start_async(record_.get(), options, true);
}
future<BaseEvent> BaseEvent::wait_async(WaitOptions options) const {
  return detail::start_async(record_.get(), options, false);
}

}  // namespace abxbus

#pragma once

#include "dispatch/job.hpp"

/// Drains that a lingering thread leaves to callers which make progress with their buses themselves.
namespace abxbus::detail {

/// How long a thread that ran dry keeps looking: 30 us, the time a wake costs.
inline constexpr int linger_pauses = 2'000;
/// Pauses between two looks at a serial bus that somebody else may be working on: 3 us (performance notes, wake-ups).
inline constexpr int look_pauses = 200;
/// How many looks an emitter gets that only emits: about 180 us, a few times what waking a sleeping worker takes.
/// Fewer (25) let a worker come between the emits and the now() of a batch of 512: then both work on the same lines and
/// the batch takes twice as long (250 to 300 against 480 to 600 ns an event).
inline constexpr int patient_looks = 60;
/// How many looks without progress a bus gets whose turn a caller has left: about 30 us, within which a caller that has
/// been put off its core is back.
inline constexpr int patient_stalls = 10;

/// Owned by one thread.
class HeldDrains {
 public:
  static constexpr int capacity = 4;
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == capacity; }
  void add(Job* job) noexcept {
    Held& held = held_[count_++];
    held = {job, {}, 0, 0, 0};
    static_cast<void>(job->look(job, held.memory));
  }
  Job* take_oldest() noexcept { return remove(0); }
  Job* take_any() noexcept { return count_ == 0 ? nullptr : remove(count_ - 1); }
  /// Takes any, and tells whether its bus waits for a drain at this moment.
  Job* take_any(bool& scheduled) noexcept {
    if (count_ == 0) return nullptr;
    Held& held = held_[count_ - 1];
    static_cast<void>(held.job->look(held.job, held.memory));
    scheduled = held.memory.scheduled;
    return remove(count_ - 1);
  }
  /// One look at each. The job whose bus stands still, or that has nothing to do any more; null: all are progressing
  /// (`progress` is set) or quiet.
  Job* look(bool& progress) noexcept {
    for (int i = 0; i < count_; ++i) {
      Held& held = held_[i];
      switch (held.job->look(held.job, held.memory)) {
        case DrainLook::closed:
          return remove(i);
        case DrainLook::stalled:
          if (!held.memory.left_by_caller || ++held.still > patient_stalls) return remove(i);
          break;
        case DrainLook::progress:
          held.quiet = held.growing = held.still = 0;
          progress = true;
          break;
        case DrainLook::growing:
          if (++held.growing > patient_looks) return remove(i);
          progress = true;
          break;
        case DrainLook::nothing:
          if (++held.quiet > linger_pauses / look_pauses) return remove(i);
          break;
      }
    }
    return nullptr;
  }

 private:
  struct Held {
    Job* job;
    DrainMemory memory;
    int quiet;
    int growing;
    int still;
  };
  Job* remove(int index) noexcept {
    Job* const job = held_[index].job;
    for (int i = index + 1; i < count_; ++i) held_[i - 1] = held_[i];
    --count_;
    return job;
  }
  Held held_[capacity];
  int count_ = 0;
};

}  // namespace abxbus::detail

#pragma once

#include "bus/run.hpp"

#include <abxbus/options.hpp>

namespace abxbus::detail {

/// One call of now(): claims the event ahead of the queue on every bus where it has not started, in the order of its
/// path and one after another (S-JMP-18), and runs it here when that cannot be observed as lateness (S-JMP-16), else on
/// another worker.
///
/// Buses may be added while the event runs, by forwarding handlers, and a run on another worker ends some time: a
/// waiter that has a Jump is told of both (look_for_legs in completion.hpp) and calls `go_on` again. No look is missed:
/// the waiter is linked, which sets flag_jumps, before the last `go_on` reads the states of the legs; a leg is
/// published, or its state set to finished, before the flag is read (all seq_cst, or with a full fence between).
class Jump {
 public:
  /// `may_run_here`: on the calling thread, inside this call. The options, and the calling handler, have to stay.
  Jump(Record* record, const WaitOptions& options, bool may_run_here) noexcept;
  Jump(const Jump&) = delete;
  Jump& operator=(const Jump&) = delete;
  ~Jump();

  /// Other threads will call `go_on`, also when the calling handler is over (then it does nothing any more).
  void outlive_caller() noexcept;
  /// Claims what is to be claimed at this moment. One thread at a time.
  void go_on() noexcept;

 private:
  Record* record_;
  const WaitOptions& options_;
  const ExecFrame* caller_;
  bool may_run_here_;
  Leg* running_ = nullptr;  ///< the last leg that this call has claimed
  Run* run_ = nullptr;      ///< the caller's, counted, once it may be outlived
  ExecFrame copy_;
};

}  // namespace abxbus::detail

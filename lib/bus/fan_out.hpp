#pragma once

#include "bus/run.hpp"
#include "event/clock.hpp"

#include <atomic>
#include <cstdint>

/// The handlers of one event as parallel tasks.
///
/// Purpose: all handlers are started without waiting for one another, in registration order (S-HND-4), by as many
/// threads as come. A participant claims a few indices from the front of `next` into its share, on a line of its own,
/// and takes them one at a time; who runs dry takes single ones from the front of other shares. So a handler that
/// blocks holds back nothing that another thread could start. Before user code is entered with work left, one helper is
/// pending in the pool; it joins and arms the next, so the team doubles as far as there are threads.
///
/// Counting: a participant counts what it settled in its share and subtracts it from `left` when the share is empty. If
/// its handler is taken, the taker subtracts that count too (it was written before the slot's RUNNING word, and its
/// owner is inside user code or has lost). Who brings `left` to 0 finishes the run. Cut short: participants settle what
/// they claim as cancelled instead of running it.
namespace abxbus::detail {

struct alignas(64) Share {
  /// begin:32, end:32. Taken from the front by compare-exchange (acq_rel).
  std::atomic<std::uint64_t> range{0};
  /// Settled and not subtracted. One writer, the owner, until its handler is taken; then the taker reads it.
  std::atomic<std::uint32_t> settled{0};
  std::int64_t last_time = 0;  ///< owner: reading that ended its last handler

  /// Owner: the reading that starts its next handler.
  std::int64_t next_start() noexcept { return last_time == 0 ? now_ns() : last_time + 1; }
};

struct ParallelState {
  static constexpr std::uint32_t max_shares = 16;
  alignas(64) std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint32_t> shares_taken{0};
  alignas(64) std::atomic<std::uint32_t> left{0};
  /// A helper is pending (exchange acq_rel). Its job holds one reference of the run.
  alignas(64) std::atomic<bool> helper_armed{false};
  struct HelperJob : Job {
    Run* run_of = nullptr;
  } helper;
  Share shares[max_shares];
};

/// Takes part until no handler is left to start.
void participate(Run* run) noexcept;
/// Subtracts settled handlers; the last one finishes the run.
void count_settled(Run* run, std::uint32_t count, bool keep_turn = false) noexcept;
/// A coroutine handler of a parallel run has ended.
void participant_settled(Run* run, std::uint32_t index) noexcept;

}  // namespace abxbus::detail

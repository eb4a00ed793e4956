#include "bus/fan_out.hpp"

#include "bus/completion.hpp"
#include "bus/settle.hpp"
#include "bus/take.hpp"
#include "event/futex.hpp"

#include <algorithm>

namespace abxbus::detail {

namespace {

constexpr std::uint64_t make_range(std::uint32_t begin, std::uint32_t end) noexcept {
  return (static_cast<std::uint64_t>(begin) << 32) | end;
}

bool pop_front(Share& share, std::uint32_t& index) noexcept {
  std::uint64_t range = share.range.load(std::memory_order_acquire);
  for (;;) {
    const auto begin = static_cast<std::uint32_t>(range >> 32);
    const auto end = static_cast<std::uint32_t>(range);
    if (begin >= end) return false;
    if (share.range.compare_exchange_weak(range, make_range(begin + 1, end), std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      index = begin;
      return true;
    }
  }
}

/// Claims indices from the front; the first is the caller's, the rest goes into its share.
bool claim_front(Run* run, ParallelState& state, Share* share, std::uint32_t& index) noexcept {
  std::uint32_t next = state.next.load(std::memory_order_acquire);
  for (;;) {
    if (next >= run->count) return false;
    const std::uint32_t remaining = run->count - next;
    const std::uint32_t fair = remaining / (8U * static_cast<std::uint32_t>(run->bus->pool->workers()));
    const std::uint32_t count = share == nullptr ? 1 : std::clamp<std::uint32_t>(fair, 1, 16);
    if (state.next.compare_exchange_weak(next, next + count, std::memory_order_acq_rel, std::memory_order_acquire)) {
      index = next;
      if (count > 1) share->range.store(make_range(next + 1, next + count), std::memory_order_release);
      return true;
    }
  }
}

bool steal(ParallelState& state, const Share* mine, std::uint32_t& index) noexcept {
  const std::uint32_t taken = std::min(state.shares_taken.load(std::memory_order_acquire), ParallelState::max_shares);
  for (std::uint32_t i = 0; i < taken; ++i)
    if (&state.shares[i] != mine && pop_front(state.shares[i], index)) return true;
  return false;
}

bool work_left(Run* run, ParallelState& state) noexcept {
  if (state.next.load(std::memory_order_relaxed) < run->count) return true;
  const std::uint32_t taken = std::min(state.shares_taken.load(std::memory_order_relaxed), ParallelState::max_shares);
  for (std::uint32_t i = 0; i < taken; ++i) {
    const std::uint64_t range = state.shares[i].range.load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(range >> 32) < static_cast<std::uint32_t>(range)) return true;
  }
  return false;
}

void run_helper(Job* job) noexcept {
  Run* const run = static_cast<ParallelState::HelperJob*>(job)->run_of;
  run->fan_out->helper_armed.store(false, std::memory_order_release);
  participate(run);
  release_run(run);
}

/// One helper is always pending while handlers have not started: it is what an idle or a spare thread finds.
void arm_helper(Run* run, ParallelState& state) noexcept {
  if (state.helper_armed.load(std::memory_order_relaxed)) return;
  if (!work_left(run, state)) return;
  if (state.helper_armed.exchange(true, std::memory_order_acq_rel)) return;
  retain_run(run);
  push_ready(run->bus, &state.helper);
}

}  // namespace

void count_settled(Run* run, std::uint32_t count, bool keep_turn) noexcept {
  if (count == 0) return;
  full_fence();  // behind the results counted here, before the flag of their waiters; the record lives until the count
  tell_result_waiters(run->record);
  if (run->fan_out->left.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  run->finished_at = std::max(run->finished_at, now_ns());
  finish_run(run, keep_turn);
}

namespace {

void after_settled(Run* run, std::uint32_t index) noexcept {
  if (run->first_mode && usable(run->results[index]) && begin_cut(run->leg, Cut::first))
    take_running(run->leg, Cut::first, nullptr);
}

/// Returns how many settled handlers the caller has still to subtract.
std::uint32_t work(Run* run) noexcept {
  ParallelState& state = *run->fan_out;
  const std::uint32_t number = state.shares_taken.fetch_add(1, std::memory_order_acq_rel);
  Share* const share = number < ParallelState::max_shares ? &state.shares[number] : nullptr;
  Share local;  // readings only, for participants without a share of their own
  std::uint32_t counted = 0;
  for (;;) {
    std::uint32_t index = 0;
    if (share == nullptr || !pop_front(*share, index)) {
      if (share != nullptr) {
        const std::uint32_t settled = share->settled.load(std::memory_order_relaxed);
        share->settled.store(0, std::memory_order_relaxed);
        counted += settled;
      }
      if (!claim_front(run, state, share, index) && !steal(state, share, index)) return counted;
    }
    if (share == nullptr) {
      // Nobody could find this count if the handler were taken: give it up before user code.
      if (counted != 0) {
        const std::uint32_t done = std::exchange(counted, 0);
        if (state.left.fetch_sub(done, std::memory_order_acq_rel) == done) return done;  // cannot happen: index is open
      }
    } else if (counted != 0) {
      share->settled.store(share->settled.load(std::memory_order_relaxed) + std::exchange(counted, 0),
                           std::memory_order_relaxed);
    }
    const Cut cut = cut_of(run);
    if (cut != Cut::none) {
      settle_cut(run, index, cut, false);
    } else {
      arm_helper(run, state);
      Share* const readings = share != nullptr ? share : &local;
      switch (execute(run, index, readings)) {
        case Step::settled:
          after_settled(run, index);
          break;
        case Step::suspended:
          continue;  // counted when the coroutine ends
        case Step::lost:
          return 0;  // the taker counts
      }
    }
    if (share != nullptr) {
      share->settled.store(share->settled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      ++counted;
    }
  }
}

}  // namespace

void participate(Run* run) noexcept {
  count_settled(run, work(run));
}

void participant_settled(Run* run, std::uint32_t index) noexcept {
  retain_run(run);
  after_settled(run, index);
  count_settled(run, 1);
  release_run(run);
}

Outcome advance_parallel(Run* run, bool keep_turn) noexcept {
  if (run->fan_out == nullptr) {
    run->fan_out = std::make_unique<ParallelState>();
    run->fan_out->left.store(run->count, std::memory_order_relaxed);
    run->fan_out->helper.run = &run_helper;
    run->fan_out->helper.run_of = run;
  }
  retain_run(run);  // the count to 0 releases the baton's reference, perhaps on another thread
  const std::uint32_t done = work(run);
  if (done != 0) {
    full_fence();
    tell_result_waiters(run->record);
  }
  const bool last = done != 0 && run->fan_out->left.fetch_sub(done, std::memory_order_acq_rel) == done;
  if (last) {
    run->finished_at = std::max(run->finished_at, now_ns());
    finish_run(run, keep_turn);
  }
  release_run(run);
  return last ? Outcome::finished : Outcome::left;
}

}  // namespace abxbus::detail

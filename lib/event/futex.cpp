#include "event/futex.hpp"

#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace abxbus::detail {

std::int64_t steady_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t deadline_ns) noexcept {
  timespec until{};
  timespec* limit = nullptr;
  if (deadline_ns != no_deadline) {
    if (deadline_ns < 0) deadline_ns = 0;
    until.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
    until.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
    limit = &until;
  }
  // FUTEX_WAIT_BITSET takes an absolute time, so a spurious return costs no arithmetic.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

namespace {

/// Until when yields are put off; CLOCK_MONOTONIC. Relaxed: a hint.
std::atomic<std::int64_t> yields_put_off{0};

}  // namespace

bool yield_core(int other) noexcept {
  constexpr std::int64_t longer_than_the_call = 4'000;
  constexpr std::int64_t a_slice_of_others = 200'000;
  constexpr std::int64_t put_off_for = 20'000'000;
  const std::int64_t before = steady_ns();
  if (before < yields_put_off.load(std::memory_order_relaxed) && other != sched_getcpu()) return false;
  sched_yield();
  const std::int64_t after = steady_ns();
  if (after - before > a_slice_of_others) yields_put_off.store(after + put_off_for, std::memory_order_relaxed);
  return after - before > longer_than_the_call;
}

int current_core() noexcept {
  return sched_getcpu();
}

}  // namespace abxbus::detail

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

bool yield_core() noexcept {
  constexpr std::int64_t longer_than_the_call = 4'000;
  const std::int64_t before = steady_ns();
  sched_yield();
  return steady_ns() - before > longer_than_the_call;
}

}  // namespace abxbus::detail

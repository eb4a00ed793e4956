#pragma once

#include <atomic>
#include <cstdint>

/// Sleeping on a word, and the fence that Dekker pairs need.
namespace abxbus::detail {

inline constexpr std::int64_t no_deadline = INT64_MAX;

/// Sleeps while `word` holds `expected`, at most until `deadline_ns` of CLOCK_MONOTONIC. May return early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t deadline_ns) noexcept;
void futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept;
/// CLOCK_MONOTONIC in nanoseconds: what waits are measured with.
std::int64_t steady_ns() noexcept;

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// For a thread that looks at a word another one will write: lets others have the core. True: somebody did. The
/// scheduler may have put both threads on one core with another one idle; it parts them when one sleeps and is woken,
/// hardly ever while both stay awake. On a machine with other work a yield may cost a time slice of theirs, some
/// milliseconds; after one that did, only those are made for 20 ms that are needed: `other`, the core on which the
/// awaited thread was seen last, is this one.
bool yield_core(int other) noexcept;
/// The core that this thread runs on at the moment. A hint; about 1 ns.
int current_core() noexcept;

/// A sequentially consistent fence. ThreadSanitizer does not model free-standing fences, so there it is an exchange on
/// a word of the calling thread; everything it orders is atomic, and payloads are also passed by acquire/release.
inline void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  thread_local std::atomic<int> own{0};
  own.exchange(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace abxbus::detail

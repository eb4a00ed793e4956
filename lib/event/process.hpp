#pragma once

#include <atomic>
#include <cstdint>

/// What a fork does to the library: the child has none of its threads. Buses made before the fork are dead in the
/// child; new ones work with threads of their own (TBB does not survive a fork).
namespace abxbus::detail {

/// How many forks lie between the first process and this one. Relaxed: written only while the process has one thread.
extern std::atomic<std::uint32_t> process_generation;

inline bool process_forked() noexcept {
  return process_generation.load(std::memory_order_relaxed) != 0;
}

/// Registers the fork handler; called before the first bus exists.
void watch_forks() noexcept;

}  // namespace abxbus::detail

#pragma once

#include "event/thread_state.hpp"

#include <atomic>
#include <cstdint>

/// What a burst of events took goes back to the system when it is over (P-MEM-4).
///
/// Purpose: an allocator gets back what other threads free only when the thread that allocated it asks for memory
/// again, and then keeps most of it. So a bus that has drained a long queue says so here, and each thread that emitted
/// collects at its next emit or at the end of its `wait_until_idle`, once a burst. Cost: one load of a word that hardly
/// ever changes an emit; the collection itself about 0.1 us an event of the burst. Memory ordering: the word is a hint
/// (relaxed). Collecting too early leaves something behind, nothing breaks.
namespace abxbus::detail {

/// Queued events from which on a drain counts as a burst: 16 MB of the smallest ones.
inline constexpr std::uint64_t burst_events = 65'536;

inline constinit std::atomic<std::uint32_t> bursts_over{0};
extern ABXBUS_TLS std::uint32_t bursts_collected;

void collect_after_burst() noexcept;

inline void note_burst_over() noexcept {
  bursts_over.fetch_add(1, std::memory_order_relaxed);
}
inline void give_back_burst() noexcept {
  if (bursts_collected != bursts_over.load(std::memory_order_relaxed)) [[unlikely]]
    collect_after_burst();
}

}  // namespace abxbus::detail

#pragma once

#include <cstddef>
#include <cstdint>

namespace abxbus {

/// What a bus's events cost (P-MEM-1, P-MEM-2): usable bytes as the allocator counts them, payload included.
struct MemoryUse {
  std::int64_t live_events = 0;  ///< events that this bus accepted first and that still exist
  std::int64_t live_bytes = 0;   ///< records, results, values, coroutine frames, log segments
  /// Highest live_bytes seen: sampled when a worker finds 64 events or more queued, when an event has 1024 handlers or
  /// more, and at every call of `memory()`.
  std::int64_t peak_bytes = 0;
  double bytes_per_event = 0;  ///< live_bytes / live_events; 0 without events
};

/// The allocator's own view of the process. Zero where the build has no mimalloc.
struct ProcessMemory {
  std::size_t resident_bytes = 0;
  std::size_t peak_resident_bytes = 0;
  std::size_t committed_bytes = 0;
  std::size_t peak_committed_bytes = 0;
};

/// Threads: any. Cost: a few microseconds.
ProcessMemory process_memory() noexcept;

/// Live bytes of all buses, destroyed ones with living event handles included; 0 when nothing is left (P-MEM-3).
std::int64_t total_live_bytes() noexcept;

/// Returns cached blocks to the operating system as far as the allocator can. Threads: any; acts on the calling one.
void collect_memory() noexcept;

}  // namespace abxbus

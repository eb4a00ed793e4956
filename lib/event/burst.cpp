#include "event/burst.hpp"

#include <abxbus/memory.hpp>

#include <mutex>

#if defined(ABXBUS_WITH_MIMALLOC)
#include <mimalloc.h>
#else
#include <malloc.h>
#endif

namespace abxbus {

namespace detail {

ABXBUS_TLS std::uint32_t bursts_collected = 0;

namespace {

/// One collection at a time: the allocator's delay is the process's.
std::mutex collecting;

/// Gives the calling thread's free memory back to the system. Otherwise the allocator only notes pages as unused and
/// returns them after a delay, when it is next asked for some in the same place: after a burst, never.
void collect(bool all) noexcept {
#if defined(ABXBUS_WITH_MIMALLOC)
#if MI_MALLOC_VERSION < 210
  constexpr mi_option_t delay = mi_option_decommit_delay;
#else
  constexpr mi_option_t delay = mi_option_purge_delay;
#endif
  const long usual = mi_option_get(delay);
  mi_option_set(delay, 0);
  mi_collect(all);
  mi_option_set(delay, usual);
#else
  static_cast<void>(all);
  malloc_trim(0);
#endif
}

}  // namespace

void collect_after_burst() noexcept {
  const std::unique_lock lock(collecting, std::try_to_lock);
  if (!lock) return;  // another thread collects; at the next emit
  bursts_collected = bursts_over.load(std::memory_order_relaxed);
  collect(false);
}

}  // namespace detail

void collect_memory() noexcept {
  const std::lock_guard lock(detail::collecting);
  detail::collect(true);
}

}  // namespace abxbus

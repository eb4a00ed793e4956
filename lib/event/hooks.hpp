#pragma once

/// Named points in the protocols at which a test may stop or reorder threads. Compiled to nothing outside test builds.

#if defined(ABXBUS_TEST_HOOKS)

#include <atomic>

namespace abxbus::detail {

enum class Hook {
  emit_ticket_taken,  ///< ticket taken, slot not published
  emit_published,     ///< slot published, turn not looked at
  drain_released,     ///< turn free, slot of the cursor not looked at again
  drain_claimed,      ///< leg claimed, run not started
  handler_running,    ///< slot RUNNING published, cut not looked at again
  handler_returned,   ///< user code over, slot not yet IDLE
  taken,              ///< slot TAKEN, result not settled
  complete_counted,   ///< last hold gone, COMPLETED not published
  waiter_signalled,   ///< waiter unlinked, thread not woken
  off_unlinked,       ///< entry removed, reclamation not tried
};

using HookFunction = void (*)(Hook);
/// Relaxed: installed before the threads under test start, removed after they ended.
inline std::atomic<HookFunction> hook_function{nullptr};

inline void hook(Hook point) {
  if (const HookFunction function = hook_function.load(std::memory_order_relaxed)) function(point);
}

}  // namespace abxbus::detail

#define ABXBUS_HOOK(point) ::abxbus::detail::hook(::abxbus::detail::Hook::point)
#else
#define ABXBUS_HOOK(point) static_cast<void>(0)
#endif

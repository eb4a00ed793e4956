#pragma once

#include "bus/core.hpp"

namespace abxbus::detail {

/// True when the calling handler has been cut short: what it emits is dropped silently (S-EMIT-9).
bool caller_is_stale() noexcept;

/// Offers an accepted event to the finds that wait on its bus (find.cpp).
void offer_to_finders(BusCore* bus, Record* record, std::uint64_t ticket) noexcept;

/// Resolves every waiting find of the bus to "no match" (destroy).
void end_finders(BusCore* bus) noexcept;

/// Puts an event into the history of a bus without accepting it: no path entry, no run, no limit, no find waiter
/// (H-HIST-27). Nothing happens on a destroyed bus.
void remember(BusCore* bus, RecordPtr event);

}  // namespace abxbus::detail

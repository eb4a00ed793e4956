#pragma once

#include "bus/core.hpp"

#include <string_view>
#include <vector>

/// Beginning and end of buses.
///
/// A core is freed when its owner and all EventBusRefs (and jobs in the pool) are gone and no event that it accepted is
/// left: the count of live events comes for nothing from the memory account. Whoever takes the last event or reference
/// away of a bus that is over tries; a sum of cells that misses a release in progress only means that the next such try
/// (of any bus) does it, since cores that are over stay in a list.
namespace abxbus::detail {

BusCore* create_core(std::string_view name, const EventBusOptions& options);
/// Owner's destructor: destroy, wait for handlers that still execute, give the reference back.
void close_owner(BusCore* core) noexcept;
void destroy_bus(BusCore* core, bool clear) noexcept;
std::vector<BusCore*> live_buses(DomainState& domain);

}  // namespace abxbus::detail

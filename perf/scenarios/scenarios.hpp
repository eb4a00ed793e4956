#pragma once

#include "harness/scenario.hpp"

namespace abxbus::perf {

// One function a scenario (P-SCN-1 to P-SCN-9), each a whole repetition with its checks.
Sample many_events(const Run& run);
Sample many_buses(const Run& run);
Sample many_handlers(const Run& run);
Sample one_off_handlers(const Run& run);
Sample forwarding_timeouts(const Run& run);
Sample parent_child_timeouts(const Run& run);
Sample cleanup_equivalence(const Run& run);
Sample fanout_io(const Run& run);
Sample sustained(const Run& run);

}  // namespace abxbus::perf

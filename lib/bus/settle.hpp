#pragma once

#include "bus/run.hpp"

/// Bringing a result to its end. Called once a result, by whoever won it (run.hpp). No user code except destructors of
/// values that are dropped.
namespace abxbus::detail {

/// What the handler returned or threw.
void settle_outcome(Run* run, std::uint32_t index, Value&& value, std::exception_ptr error,
                    struct Share* share) noexcept;
/// Cut short for `reason`, before it started or while it ran.
void settle_cut(Run* run, std::uint32_t index, Cut reason, bool was_running) noexcept;
/// Its own deadline passed.
void settle_handler_timeout(Run* run, std::uint32_t index) noexcept;
/// The one error that everything of the run that is cut for `reason` has as its cause (T-NST-5).
std::exception_ptr cut_cause(Run* run, Cut reason);
}  // namespace abxbus::detail

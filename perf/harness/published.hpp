#pragma once

#include "harness/runner.hpp"

#include <string>
#include <string_view>

namespace abxbus::perf {

/// Upstream's best published figures beside ours, with the factor; empty when none of its scenarios was measured.
std::string published_section(const Results& results);

/// Head and our row of upstream's matrix.
std::string matrix_row(std::string_view runtime, const Results& results);

}  // namespace abxbus::perf

#pragma once

#include "harness/json.hpp"
#include "harness/machine.hpp"
#include "harness/runner.hpp"

#include <string_view>

namespace abxbus::perf {

/// The document of P-DRV-3.
Json json_report(std::string_view program, const Machine& machine, const Results& results);

}  // namespace abxbus::perf

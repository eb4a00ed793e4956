#pragma once

#include "harness/machine.hpp"
#include "harness/runner.hpp"

#include <string>
#include <string_view>

namespace abxbus::perf {

/// What people see (P-DRV-2): the head first, a row as soon as its scenario is done, the rest at the end.
std::string head_of_table(std::string_view program, const Machine& machine, const Reference& reference);
std::string row_of(const Result& result);
/// Total line, the scenarios' own figures, upstream's best beside ours, and last the row of upstream's matrix.
std::string foot_of_table(std::string_view runtime, const Results& results);

}  // namespace abxbus::perf

#include "harness/resident.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace abxbus::perf {

namespace {

std::optional<std::int64_t> status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtoll(line.c_str() + key.size(), nullptr, 10) * 1024;
  }
  return std::nullopt;
}

// The kernel's way of saying: forget the highest resident set seen so far.
bool reset_peak() {
  std::ofstream control("/proc/self/clear_refs");
  control << "5" << std::flush;
  return control.good();
}

}  // namespace

std::optional<std::int64_t> resident_bytes() {
  return status_bytes("VmRSS:");
}

ResidentGrowth::ResidentGrowth() {
  if (reset_peak()) start_ = resident_bytes();
}

std::optional<std::int64_t> ResidentGrowth::peak_bytes() const {
  const std::optional<std::int64_t> peak = status_bytes("VmHWM:");
  if (!start_ || !peak) return std::nullopt;
  return std::max<std::int64_t>(0, *peak - *start_);
}

}  // namespace abxbus::perf

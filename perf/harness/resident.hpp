#pragma once

#include <cstdint>
#include <optional>

namespace abxbus::perf {

/// The resident set now; nothing where the system does not tell.
std::optional<std::int64_t> resident_bytes();

/// Growth of the resident set between its construction and its highest point since.
class ResidentGrowth {
 public:
  ResidentGrowth();
  /// Nothing where the system does not tell, or does not let the process reset its peak.
  std::optional<std::int64_t> peak_bytes() const;

 private:
  std::optional<std::int64_t> start_;
};

}  // namespace abxbus::perf

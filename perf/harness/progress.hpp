#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace abxbus::perf {

/// One line on stderr that says where a long scenario is: only on a terminal, only after a second (P-DRV-4).
/// Threads: the one that runs the scenario.
class Progress {
 public:
  explicit Progress(std::string_view scenario);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::string_view what);
  /// Takes the line away.
  void clear();

 private:
  std::string scenario_;
  std::int64_t start_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace abxbus::perf

#include "harness/progress.hpp"

#include "harness/clock.hpp"

#include <cstdio>
#include <unistd.h>

namespace abxbus::perf {

Progress::Progress(std::string_view scenario)
    : scenario_(scenario), start_(now_ns()), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::step(std::string_view what) {
  if (!terminal_ || now_ns() - start_ < 1'000'000'000) return;
  std::fprintf(stderr, "\r\033[K%s: %.*s", scenario_.c_str(), static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace abxbus::perf

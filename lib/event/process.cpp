#include "event/process.hpp"

#include <pthread.h>

namespace abxbus::detail {

std::atomic<std::uint32_t> process_generation{0};

void watch_forks() noexcept {
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { process_generation.fetch_add(1, std::memory_order_relaxed); });
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace abxbus::detail

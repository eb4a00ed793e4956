// A data race of our own, between two handlers of one event that run side by side. ThreadSanitizer has to report it in
// spite of tsan.supp: both handlers stand on frames of the library and of oneTBB.

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace abxbus::test {

int unguarded = 0;

__attribute__((noinline)) void touch() {
  ++unguarded;
}

struct Tick {};

}  // namespace abxbus::test

int main() {
  using abxbus::test::Tick;
  std::atomic<int> inside{0};
  abxbus::EventBusOptions options;
  options.event_handler_concurrency = abxbus::EventHandlerConcurrency::parallel;
  abxbus::EventBus bus("PlantedRace", options);
  const auto handler = [&inside](const Tick&) {
    abxbus::test::touch();
    // Relaxed, so that it orders nothing: each handler stays until the other has begun, on another thread then.
    inside.fetch_add(1, std::memory_order_relaxed);
    while (inside.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
  };
  bus.on<Tick>(handler);
  bus.on<Tick>(handler);
  bus.emit(Tick{}).wait();
}

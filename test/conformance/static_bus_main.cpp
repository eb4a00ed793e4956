// A program with buses of static storage: they end after main, with work of every kind behind them and one handler
// that never returns. The exit status is 0 when nothing hangs or crashes.

#include <abxbus/abxbus.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>

namespace {

using namespace std::chrono_literals;

struct Work {
  int number = 0;
};
struct Stuck {};
struct Slow {};

/// Never destroyed: the stuck handler still waits in it when the process ends.
struct Forever {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;

  void enter() {
    std::unique_lock lock(mutex);
    reached = true;
    changed.notify_all();
    changed.wait(lock, [] { return false; });
  }
  bool wait_until_reached() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, [&] { return reached; });
  }
};

Forever& forever() {
  static Forever& instance = *new Forever;
  return instance;
}

std::optional<abxbus::Event<Work>> kept;  // an event that outlives the buses
abxbus::EventBus plain("StaticPlain");
abxbus::EventBus stuck("StaticStuck", {.destroy_grace = 50ms});
abxbus::EventBus queued("StaticQueued", {.max_history_size = std::nullopt});
abxbus::EventBus unused("StaticUnused");

}  // namespace

int main() {
  plain.on<Work>([](const Work& work) { return work.number; });
  plain.on<Work>([](abxbus::Event<Work> event) -> abxbus::task<int> { co_return event->number + 1; });
  kept = plain.emit(Work{1}).now();
  if (kept->event_results().size() != 2) return 1;

  queued.on<Slow>([](const Slow&, std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, stop, [] { return false; });
  });
  for (int i = 0; i < 100; ++i) queued.emit(Slow{});

  abxbus::set_log_level(abxbus::LogLevel::error);
  abxbus::set_log_sink([](abxbus::LogLevel, std::string_view) {});
  stuck.on<Stuck>([](const Stuck&) { forever().enter(); });
  stuck.emit(Stuck{});
  return forever().wait_until_reached() ? 0 : 2;
}

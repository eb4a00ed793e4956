#include "event/clock.hpp"

#include "event/clock_pieces.hpp"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace abxbus::detail {
namespace {

std::int64_t system_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Whether the counter runs at one rate, in all sleep states, on all cores alike.
bool tsc_is_usable() noexcept {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0x80000007U, &a, &b, &c, &d) == 0 || (d & (1U << 8)) == 0) return false;
  // The kernel falls back to one of these when it has seen the counters of the cores disagree.
  char source[32] = {};
  if (std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re")) {
    if (std::fgets(source, sizeof source, file) == nullptr) source[0] = '\0';
    std::fclose(file);
  }
  for (const char* slow : {"hpet", "acpi_pm", "jiffies", "refined-jiffies"})
    if (std::strncmp(source, slow, std::strlen(slow)) == 0) return false;
  return true;
#else
  return false;
#endif
}

/// The clocks of the machine, for the making of pieces.
struct MachineClocks {
  static bool counter_is_usable() noexcept { return tsc_is_usable(); }
  /// Whether `counter` is the time stamp counter or the monotonic clock in nanoseconds. Before the first piece only.
  static void use_counter(bool use) noexcept { clock_uses_tsc.store(use, std::memory_order_relaxed); }
  static std::uint64_t counter() noexcept { return read_ticks(); }
  static std::int64_t monotonic() noexcept { return system_ns(CLOCK_MONOTONIC); }
  static std::int64_t wall() noexcept { return system_ns(CLOCK_REALTIME); }
};

constinit PieceMaker<MachineClocks> pieces;

constinit std::atomic<std::int64_t> manual_time{0};

constexpr bool manual(std::uint32_t era) noexcept {
  return era % 2 == 0;
}

void enter_era(ThreadClock& clock, std::uint32_t era) noexcept {
  clock.era = era;
  clock.span = 0;
  clock.last = std::numeric_limits<std::int64_t>::min();
}

struct Hooks {
  std::mutex mutex;
  std::list<std::function<void()>> functions;

  static Hooks& instance() {
    static Hooks& hooks = *new Hooks;  // outlives every thread
    return hooks;
  }
  void call() {
    const std::lock_guard lock(mutex);
    for (const auto& function : functions) function();
  }
};

}  // namespace

std::uint64_t monotonic_ticks() noexcept {
  return static_cast<std::uint64_t>(system_ns(CLOCK_MONOTONIC));
}

std::int64_t now_ns_slow(ThreadClock& clock) noexcept {
  const std::uint32_t era = clock_era.load(std::memory_order_relaxed);
  if (clock.era != era) enter_era(clock, era);
  std::int64_t now = manual(era) ? manual_time.load(std::memory_order_acquire) : pieces.read(clock);
  if (now <= clock.last) now = clock.last + 1;
  clock.last = now;
  return now;
}

void note_time_slow(ThreadClock& clock, std::int64_t time) noexcept {
  enter_era(clock, clock_era.load(std::memory_order_relaxed));
  clock.last = time;
}

void clock_correct() noexcept {
  if (!clock_is_manual()) pieces.correct_early();
}

bool clock_is_manual() noexcept {
  return manual(clock_era.load(std::memory_order_relaxed));
}

ClockMovedHook::ClockMovedHook(std::function<void()> moved) {
  Hooks& hooks = Hooks::instance();
  const std::lock_guard lock(hooks.mutex);
  place_ = hooks.functions.insert(hooks.functions.end(), std::move(moved));
}

ClockMovedHook::~ClockMovedHook() {
  Hooks& hooks = Hooks::instance();
  const std::lock_guard lock(hooks.mutex);
  hooks.functions.erase(place_);
}

ManualClock::ManualClock() : ManualClock(now_ns()) {}

ManualClock::ManualClock(std::int64_t start_ns) {
  manual_time.store(start_ns, std::memory_order_release);
  clock_era.fetch_add(1, std::memory_order_release);
  Hooks::instance().call();
}

ManualClock::~ManualClock() {
  clock_era.fetch_add(1, std::memory_order_release);
  Hooks::instance().call();
}

std::int64_t ManualClock::value() const noexcept {
  return manual_time.load(std::memory_order_acquire);
}

void ManualClock::set(std::int64_t time_ns) {
  if (time_ns > value()) manual_time.store(time_ns, std::memory_order_release);
  Hooks::instance().call();
}

void ManualClock::advance(std::int64_t by_ns) {
  set(value() + by_ns);
}

}  // namespace abxbus::detail

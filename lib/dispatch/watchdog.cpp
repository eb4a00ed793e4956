#include "dispatch/watchdog.hpp"

#include "dispatch/exec_slot.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"

#include <algorithm>
#include <new>
#include <pthread.h>
#include <sys/prctl.h>
#include <system_error>
#include <thread>
#include <vector>

namespace abxbus::detail {

namespace {

alignas(Watchdog) unsigned char storage[sizeof(Watchdog)];

/// Immortal; replaced in a forked child, where the old one's thread does not exist.
Watchdog* instance() noexcept {
  static Watchdog* made = [] {
    auto* first = ::new (static_cast<void*>(storage)) Watchdog;
    pthread_atfork(nullptr, nullptr, [] { ::new (static_cast<void*>(storage)) Watchdog; });
    return first;
  }();
  return made;
}

/// Generation of each slot at the last look. Only the watchdog's thread touches it.
thread_local std::vector<std::uint64_t> last_words;

}  // namespace

Watchdog& watchdog() noexcept {
  return *instance();
}

TimerHeap::Key Watchdog::arm(std::int64_t due_steady_ns, TimerFunction function, void* context) {
  bool wake = false;
  const TimerHeap::Key key = timers_.add(due_steady_ns, function, context, wake);
  if (wake) kick();
  return key;
}

void Watchdog::ensure_thread() {
  if (running_.load(std::memory_order_acquire)) return;
  if (running_.exchange(true, std::memory_order_acq_rel)) return;
  try {
    std::thread([this] { loop(); }).detach();
  } catch (const std::system_error&) {
    running_.store(false, std::memory_order_release);  // tried again at the next kick
  }
}

void Watchdog::kick() noexcept {
  ensure_thread();
  if (kicked_.exchange(1, std::memory_order_acq_rel) == 0) futex_wake(kicked_, 1);
}

void Watchdog::loop() noexcept {
  pthread_setname_np(pthread_self(), "abxbus-watch");
  // The kernel may put a thread's timers off by 50 us to wake for several at once: a twentieth of a 1 ms deadline.
  static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL));
  for (;;) {
    // Acquire: a kick that this takes back has published its slot before, so the scan sees it.
    kicked_.exchange(0, std::memory_order_acq_rel);
    const std::int64_t now = now_ns();
    const std::int64_t steady = steady_ns();
    // Whoever starts during the scan and is missed has to kick only for a deadline before the next one.
    const std::int64_t promise = quiet_ ? INT64_MAX : now + interval_;
    next_look_.store(promise, std::memory_order_seq_cst);
    TimerFunction function = nullptr;
    void* context = nullptr;
    while (timers_.take_due(steady, function, context)) function(context);
    const Seen seen = scan(now);
    const std::int64_t look = plan(now, promise, seen);
    if (look == INT64_MAX && promise != INT64_MAX) continue;  // quiet now: once more, without a promise
    next_look_.store(look, std::memory_order_seq_cst);
    sleep_until(look == INT64_MAX ? INT64_MAX : steady + (look - now));
  }
}

/// Sleeps until `due`, a timer or a kick. A sleeper wakes some 20 us late, so it wakes as much earlier and, if then a
/// handler still runs whose deadline comes within that time, looks at the clock for the rest.
void Watchdog::sleep_until(std::int64_t due) noexcept {
  static const std::int64_t lead = std::thread::hardware_concurrency() > 1 ? 25'000 : 0;
  const std::int64_t until = timers_.plan(due);
  if (until - steady_ns() > lead) {
    futex_wait(kicked_, 0, until == INT64_MAX ? INT64_MAX : until - lead);
    return;
  }
  while (kicked_.load(std::memory_order_relaxed) == 0 && steady_ns() < until) cpu_pause();
}

/// When to look again. Never later than promised.
std::int64_t Watchdog::plan(std::int64_t now, std::int64_t promise, const Seen& seen) noexcept {
  constexpr std::int64_t least_interval = 200'000;
  constexpr std::int64_t greatest_interval = 60'000'000'000;
  constexpr int looks_until_doubled = 8;
  quiet_ = !seen.moved && seen.earliest == INT64_MAX;
  if (quiet_) return INT64_MAX;
  const std::int64_t ahead = seen.earliest == INT64_MAX ? INT64_MAX : seen.earliest - now;
  if (promise == INT64_MAX || ahead < interval_) {
    interval_ = std::clamp(ahead, least_interval, greatest_interval);
    looks_ = 0;
  } else if (++looks_ >= looks_until_doubled) {
    // Starts and ends between two looks, but none with a short deadline: they may have stopped.
    looks_ = 0;
    interval_ = std::min(2 * interval_, greatest_interval);
  }
  return std::min({seen.earliest, promise, now + interval_});
}

Watchdog::Seen Watchdog::scan(std::int64_t now) noexcept {
  Seen seen;
  std::size_t position = 0;
  slot_pool().for_each([&](ExecSlot& slot) {
    const std::size_t mine = position++;
    if (last_words.size() <= mine) last_words.resize(mine + 1, 0);
    const std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    const std::uint64_t before = std::exchange(last_words[mine], word & ~slot_state_mask & ~slot_pin);
    if ((word & slot_state_mask) != slot_running) {
      seen.moved = seen.moved || before != last_words[mine];
      return;
    }
    const std::int64_t deadline = slot.deadline.load(std::memory_order_relaxed);
    const std::int64_t slow = slot.slow_at.load(std::memory_order_relaxed);
    const std::int64_t event_slow = slot.event_slow_at.load(std::memory_order_relaxed);
    if (deadline <= now) {
      deadline_passed(slot, word);
      seen.moved = true;
      return;
    }
    if (slow <= now) {
      slow_threshold_passed(slot, word, false);
    } else {
      seen.earliest = std::min(seen.earliest, slow);
    }
    if (event_slow <= now) {
      slow_threshold_passed(slot, word, true);
    } else {
      seen.earliest = std::min(seen.earliest, event_slow);
    }
    seen.earliest = std::min(seen.earliest, deadline);
  });
  return seen;
}

}  // namespace abxbus::detail

#include "dispatch/watchdog.hpp"

#include "dispatch/exec_slot.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"

#include <algorithm>
#include <new>
#include <pthread.h>
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
  const TimerHeap::Key key = timers_.add(due_steady_ns, function, context);
  kick();
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
  for (;;) {
    // Acquire: a kick that this takes back has published its slot before, so the scan sees it.
    kicked_.exchange(0, std::memory_order_acq_rel);
    next_look_.store(INT64_MAX, std::memory_order_seq_cst);
    const std::int64_t now = now_ns();
    const std::int64_t steady = steady_ns();
    TimerFunction function = nullptr;
    void* context = nullptr;
    while (timers_.take_due(steady, function, context)) function(context);
    std::int64_t look = scan(now);
    if (look != INT64_MAX) {
      // 100 us at least, so that a deadline in the past that cannot be taken yet does not spin.
      last_interval_ = std::max<std::int64_t>(look - now, 100'000);
      look = now + last_interval_;
    }
    next_look_.store(look, std::memory_order_seq_cst);
    const std::int64_t wait_slots = look == INT64_MAX ? INT64_MAX : steady + (look - now);
    futex_wait(kicked_, 0, std::min(wait_slots, timers_.earliest()));
  }
}

std::int64_t Watchdog::scan(std::int64_t now) noexcept {
  std::int64_t earliest = INT64_MAX;
  bool moved = false;
  std::size_t position = 0;
  slot_pool().for_each([&](ExecSlot& slot) {
    const std::size_t mine = position++;
    if (last_words.size() <= mine) last_words.resize(mine + 1, 0);
    const std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    const std::uint64_t before = std::exchange(last_words[mine], word & ~slot_state_mask & ~slot_pin);
    if ((word & slot_state_mask) != slot_running) {
      moved = moved || before != last_words[mine];
      return;
    }
    const std::int64_t deadline = slot.deadline.load(std::memory_order_relaxed);
    const std::int64_t slow = slot.slow_at.load(std::memory_order_relaxed);
    const std::int64_t event_slow = slot.event_slow_at.load(std::memory_order_relaxed);
    if (deadline <= now) {
      deadline_passed(slot, word);
      return;
    }
    if (slow <= now) {
      slow_threshold_passed(slot, word, false);
    } else {
      earliest = std::min(earliest, slow);
    }
    if (event_slow <= now) {
      slow_threshold_passed(slot, word, true);
    } else {
      earliest = std::min(earliest, event_slow);
    }
    earliest = std::min(earliest, deadline);
  });
  // Starts and ends between two looks: look again about as soon as last time. Doubling lets the interval grow back
  // when the short deadlines have stopped.
  if (moved && last_interval_ < 60'000'000'000) earliest = std::min(earliest, now + 2 * last_interval_);
  return earliest;
}

}  // namespace abxbus::detail

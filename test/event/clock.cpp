#include "event/clock.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

using namespace abxbus::detail;

namespace {

std::int64_t system_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

constexpr std::int64_t second = 1'000'000'000;

}  // namespace

TEST_CASE("readings of one thread increase strictly, over the ends of pieces as well", "[D-TIM-7]") {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  std::int64_t last = now_ns();
  bool increasing = true;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1'000; ++i) {
      const std::int64_t next = i % 2 == 0 ? now_ns() : now_ns_chained();
      increasing = increasing && next > last;
      last = next;
    }
  }
  CHECK(increasing);
}

TEST_CASE("time never decreases from thread to thread under a mutex", "[D-TIM-7]") {
  std::mutex mutex;
  std::int64_t latest = 0;
  std::atomic<bool> fell{false};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
        while (std::chrono::steady_clock::now() < end) {
          for (int i = 0; i < 100; ++i) {
            const std::lock_guard lock(mutex);
            const std::int64_t now = now_ns();
            if (now < latest) fell = true;
            latest = now;
          }
        }
      });
  }
  CHECK_FALSE(fell);
}

TEST_CASE("time never decreases along a hand-over by one store", "[D-TIM-7]") {
  // Odd turns belong to the second thread. Each reads the clock after it has seen the other's value.
  std::atomic<std::int64_t> stamp{0};
  std::atomic<int> turn{0};
  std::atomic<bool> fell{false};
  const auto play = [&](int parity) {
    for (int mine = parity; mine < 20'000; mine += 2) {
      for (int spin = 0; turn.load(std::memory_order_acquire) != mine; ++spin)
        if (spin > 1'000) std::this_thread::yield();
      const std::int64_t now = now_ns();
      if (now < stamp.load(std::memory_order_relaxed)) fell = true;
      stamp.store(now, std::memory_order_relaxed);
      turn.store(mine + 1, std::memory_order_release);
    }
  };
  {
    const std::jthread other([&] { play(1); });
    play(0);
  }
  CHECK_FALSE(fell);
}

TEST_CASE("the clock follows the system's", "[D-TIM-7]") {
  // Whoever is interrupted between the readings tries again.
  std::int64_t error = second;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t before = system_time();
    const std::int64_t now = now_ns();
    const std::int64_t after = system_time();
    error = std::min(error, std::max({before - now, now - after, std::int64_t{0}}));
  }
  CHECK(error < 1'000'000);
}

TEST_CASE("what a thread has noted lies before its next reading", "[D-TIM-7]") {
  std::int64_t noted = 0;
  std::int64_t next = 0;
  std::int64_t unmoved = 0;
  std::int64_t fresh = 0;
  std::jthread([&] {
    noted = now_ns() + 3'600 * second;
    note_time(noted);
    next = now_ns();
    note_time(noted - second);
    unmoved = now_ns();
  }).join();
  std::jthread([&] {
    note_time(noted);  // the first thing that this thread does with the clock
    fresh = now_ns();
  }).join();
  CHECK(next == noted + 1);
  CHECK(unmoved == noted + 2);
  CHECK(fresh == noted + 1);
}

TEST_CASE("correcting at any time changes nothing for readers", "[D-TIM-7]") {
  std::int64_t last = now_ns();
  bool increasing = true;
  for (int i = 0; i < 2'000; ++i) {
    clock_correct();
    const std::int64_t next = now_ns();
    increasing = increasing && next > last;
    last = next;
  }
  CHECK(increasing);
}

TEST_CASE("a manual clock stands until it is moved", "[D-TIM-7]") {
  const std::int64_t start = 1'700'000'000 * second;
  CHECK_FALSE(clock_is_manual());
  {
    ManualClock clock(start);
    CHECK(clock_is_manual());
    CHECK(now_ns() == start);
    CHECK(now_ns() == start + 1);
    CHECK(now_ns_chained() == start + 2);

    std::int64_t elsewhere = 0;
    std::jthread([&] { elsewhere = now_ns(); }).join();
    CHECK(elsewhere == start);

    clock.advance(60 * second);
    CHECK(clock.value() == start + 60 * second);
    CHECK(now_ns() == start + 60 * second);
    clock.set(start);  // never backwards
    CHECK(now_ns() == start + 60 * second + 1);

    note_time(start + 90 * second);
    CHECK(now_ns() == start + 90 * second + 1);
    clock_correct();
    CHECK(now_ns() == start + 90 * second + 2);
  }
  CHECK_FALSE(clock_is_manual());
}

TEST_CASE("what a manual clock said is forgotten with it", "[D-TIM-7]") {
  const std::int64_t before = now_ns();
  {
    ManualClock clock;
    CHECK(clock.value() >= before);
    clock.advance(1'000 * second);
    CHECK(now_ns() >= before + 1'000 * second);
  }
  const std::int64_t after = now_ns();
  CHECK(after > before);
  CHECK(after < before + 500 * second);
}

TEST_CASE("hooks hear of every move of a manual clock", "[D-TIM-7]") {
  std::vector<std::int64_t> heard;
  const std::int64_t start = 1'700'000'000 * second;
  {
    const ClockMovedHook hook([&] { heard.push_back(clock_is_manual() ? now_ns() / second * second : 0); });
    {
      ManualClock clock(start);
      clock.advance(5 * second);
      clock.set(start + 7 * second);
    }
  }
  { ManualClock unheard(start); }
  CHECK(heard == std::vector<std::int64_t>{start, start + 5 * second, start + 7 * second, 0});
}

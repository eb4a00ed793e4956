#include "event/clock_pieces.hpp"

#include "support/catch.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>

using namespace abxbus::detail;

namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t second = 1'000'000'000;

/// A machine whose clocks go as told. Every look at a clock takes 20 ns.
struct Machine {
  bool usable = true;
  bool use = false;
  double ticks_per_ns = 2.5;
  double ticks = 1e9;
  double mono = 5e12;
  double wall_offset = 1.7e18;

  void pass(std::int64_t ns) {
    ticks += static_cast<double>(ns) * ticks_per_ns;
    mono += static_cast<double>(ns);
  }
  std::int64_t wall() const { return static_cast<std::int64_t>(wall_offset) + static_cast<std::int64_t>(mono); }
  std::uint64_t counter() const { return static_cast<std::uint64_t>(use ? ticks : mono); }
};

struct FakeClocks {
  Machine* machine = nullptr;
  bool counter_is_usable() const noexcept { return machine->usable; }
  void use_counter(bool use) const noexcept { machine->use = use; }
  std::uint64_t counter() const noexcept {
    machine->pass(20);
    return machine->counter();
  }
  std::int64_t monotonic() const noexcept {
    machine->pass(20);
    return static_cast<std::int64_t>(machine->mono);
  }
  std::int64_t wall() const noexcept {
    machine->pass(20);
    return machine->wall();
  }
};

/// One reader as in `now_ns`, without the rule that its readings differ.
struct Bench {
  Machine machine;
  PieceMaker<FakeClocks> maker{FakeClocks{&machine}};
  ThreadClock own;

  std::int64_t read(ThreadClock& clock) {
    machine.pass(20);
    const std::uint64_t passed = machine.counter() - clock.start;
    return passed < clock.span ? clock.origin + ticks_to_ns(passed, clock.rate) : maker.read(clock);
  }
  std::int64_t read() { return read(own); }
  std::int64_t error() {
    const std::int64_t time = read();
    return std::abs(time - machine.wall());
  }
  /// Past calibration and the short pieces.
  void warm_up() {
    for (int i = 0; i < 3'000; ++i) {
      machine.pass(ms);
      read();
    }
  }
};

/// Reads every millisecond for so long and tells whether time ever fell.
bool falls(Bench& bench, std::int64_t ns) {
  bool fell = false;
  std::int64_t last = bench.read();
  for (std::int64_t passed = 0; passed < ns; passed += ms) {
    bench.machine.pass(ms);
    const std::int64_t now = bench.read();
    fell = fell || now < last;
    last = now;
  }
  return fell;
}

}  // namespace

TEST_CASE("the system clock serves until the counter is calibrated", "[D-TIM-7]") {
  Bench bench;
  std::int64_t last = 0;
  for (int i = 0; i < 1'000; ++i) {
    bench.machine.pass(5 * us);
    const std::int64_t now = bench.read();
    CHECK(now >= last);
    last = now;
    CHECK(std::abs(now - bench.machine.wall()) < 60 * us);
    // The system clock is set back in the middle of it.
    if (i == 100) bench.machine.wall_offset -= 50e3;
  }
  CHECK(bench.own.span > 0);
}

TEST_CASE("the counter's rate is found and kept", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  CHECK(bench.error() < us);
  // One reading a second, a drift of 20 millionths.
  bench.machine.ticks_per_ns *= 1 + 20e-6;
  for (int i = 0; i < 60; ++i) {
    bench.machine.pass(second);
    CHECK(bench.error() < 100 * us);
  }
  CHECK(bench.error() < 5 * us);
}

TEST_CASE("a wall clock set back makes no value smaller and is approached slowly", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  bench.machine.wall_offset -= 5e9;
  CHECK_FALSE(falls(bench, 3 * second));
  const std::int64_t start = bench.error();
  CHECK(start > 5 * second - 10 * ms);
  CHECK_FALSE(falls(bench, 100 * second));
  const std::int64_t gained = start - bench.error();
  CHECK(gained > 95 * ms);
  CHECK(gained < 105 * ms);
}

TEST_CASE("a wall clock set forward is approached slowly as well", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  const std::int64_t before = bench.read();
  bench.machine.wall_offset += 3600e9;
  CHECK_FALSE(falls(bench, 10 * second));
  const std::int64_t passed = bench.read() - before;
  CHECK(passed > 10 * second);
  CHECK(passed < 10 * second + 20 * ms);
}

TEST_CASE("a small step is worked off and then the clock is right again", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  bench.machine.wall_offset -= 20e6;
  CHECK_FALSE(falls(bench, 60 * second));
  CHECK(bench.error() < 50 * us);
}

TEST_CASE("the bend towards the wall clock ends with its piece", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  bench.machine.wall_offset += 10e6;
  falls(bench, 2 * second);
  // Nobody reads for an hour: 3.6 s too far, were it bent all the time.
  bench.machine.pass(3'600 * second);
  CHECK(bench.error() < 20 * ms);
}

TEST_CASE("every counter value stands for one time, whoever reads it", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  ThreadClock other;
  ThreadClock rare;
  std::int64_t last = bench.read();
  bool fell = false;
  for (int i = 0; i < 20'000; ++i) {
    if (i % 37 == 0) bench.maker.correct_early();
    if (i == 5'000) bench.machine.wall_offset -= 1e9;
    if (i == 12'000) bench.machine.wall_offset += 2e9;
    bench.machine.pass((i * 7919) % (2 * ms));
    for (ThreadClock* clock : {&bench.own, &other, &rare}) {
      if (clock == &rare && i % 1'500 != 0) continue;
      const std::int64_t now = bench.read(*clock);
      fell = fell || now < last;
      last = now;
    }
  }
  CHECK_FALSE(fell);
}

TEST_CASE("a piece prepared early is used only behind the one in use", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  bench.machine.pass(second);
  bench.read();  // a new piece
  const ThreadClock first = bench.own;
  bench.machine.pass(700 * ms);
  bench.machine.wall_offset += 1e9;
  bench.maker.correct_early();
  ThreadClock late;
  bench.read(late);
  CHECK(late.start == first.start);
  CHECK(late.rate == first.rate);
  CHECK(late.span == first.span);
  bench.machine.pass(400 * ms);
  bench.read(late);
  CHECK(late.start == first.start + first.span);
  CHECK(late.rate > first.rate);
}

TEST_CASE("a counter that ran on while the machine slept does not carry time along", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  const std::int64_t before = bench.read();
  bench.machine.ticks += 3600e9 * bench.machine.ticks_per_ns;
  bench.machine.pass(10 * ms);
  std::int64_t now = bench.read();
  CHECK(now >= before);
  CHECK(now < before + 2 * second);
  CHECK_FALSE(falls(bench, 30 * second));
  now = bench.read();
  CHECK(now - before > 30 * second);
  CHECK(now - before < 33 * second);
}

TEST_CASE("a counter that was set back makes no value smaller", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  const std::int64_t before = bench.read();
  bench.machine.ticks = 1e6;
  bench.machine.pass(5 * second);
  CHECK(bench.read() >= before + 4 * second);
  CHECK_FALSE(falls(bench, 10 * second));
  CHECK(bench.error() < 2 * second);
}

TEST_CASE("a counter whose rate changed is measured anew", "[D-TIM-7]") {
  Bench bench;
  bench.warm_up();
  bench.machine.ticks_per_ns *= 1.1;
  CHECK_FALSE(falls(bench, 10 * second));
  const std::int64_t before = bench.read();
  const std::int64_t wall = bench.machine.wall();
  CHECK_FALSE(falls(bench, 20 * second));
  const std::int64_t passed = bench.read() - before;
  const std::int64_t real = bench.machine.wall() - wall;
  CHECK(std::abs(passed - real) < 25 * ms);
}

TEST_CASE("without a usable counter the monotonic clock is the counter", "[D-TIM-7]") {
  for (const bool usable : {false, true}) {
    Bench bench;
    bench.machine.usable = usable;
    if (usable) bench.machine.ticks_per_ns = 0;  // claims to run and stands still
    bench.warm_up();
    CHECK_FALSE(bench.machine.use);
    CHECK(bench.error() < us);
    bench.machine.wall_offset -= 1e9;
    CHECK_FALSE(falls(bench, 5 * second));
  }
}

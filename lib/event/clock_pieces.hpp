#pragma once

#include "event/clock.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <mutex>

/// How the pieces of the clock (see clock.hpp) are made and corrected. Apart from the machine's clocks, so that a test
/// can set these back.
namespace abxbus::detail {

/// The counter beside both system clocks. Each pair is the closest of several bracketed readings.
struct Sample {
  std::uint64_t ticks = 0;       ///< counter at `monotonic`
  std::uint64_t wall_ticks = 0;  ///< counter at `wall`
  std::int64_t monotonic = 0;
  std::int64_t wall = 0;
  std::uint64_t uncertainty = 0;  ///< counter steps of the wider bracket
};

/// One clock, and the counter in the middle of the narrowest bracket around it; returns the bracket's width.
template <class Counter, class Clock>
std::uint64_t pair_up(Counter counter, Clock clock, int attempts, std::uint64_t& ticks, std::int64_t& time) noexcept {
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int i = 0; i < attempts; ++i) {
    const std::uint64_t opening = counter();
    const std::int64_t between = clock();
    const std::uint64_t width = counter() - opening;
    if (width >= narrowest) continue;
    narrowest = width;
    ticks = opening + width / 2;
    time = between;
  }
  return narrowest;
}

/// A straight piece of the function from counter to time.
struct Piece {
  std::uint64_t start = 0;
  std::uint64_t span = 0;
  std::uint64_t rate = 0;
  std::int64_t origin = 0;

  std::uint64_t end() const noexcept { return start + span; }
  std::int64_t at(std::uint64_t ticks) const noexcept { return origin + ticks_to_ns(ticks - start, rate); }
};

/// Counter values wrap in theory and jump back when a machine is restored, so their order is that of their distance.
inline bool before(std::uint64_t left, std::uint64_t right) noexcept {
  return static_cast<std::int64_t>(left - right) < 0;
}

inline std::uint64_t fixed_rate(double ns_per_tick) noexcept {
  return static_cast<std::uint64_t>(std::ldexp(ns_per_tick, rate_shift));
}

inline constexpr std::int64_t calibration_ns = 2'000'000;
/// Lengths of the pieces: short at first, while the rate is known to some millionths only.
inline constexpr double piece_ns[] = {1e7, 1e8, 1e9};
/// An error against the wall clock is worked off in about this time, bending the rate by at most that much.
inline constexpr double steering_ns = 4e9;
inline constexpr double steering_limit = 1e-3;
/// A measured rate this far from the known one means that one of the clocks stopped or jumped.
inline constexpr double plausible_change = 1e-3;

/// Makes the pieces. All members belong to the mutex; its sections are short and hold no user code.
///
/// `Clocks` is what it measures with: counter_is_usable(), use_counter(bool), counter(), monotonic(), wall(), all
/// noexcept. Where the counter is not used, `counter` is the monotonic clock.
template <class Clocks>
class PieceMaker {
 public:
  constexpr explicit PieceMaker(Clocks clocks = {}) noexcept : clocks_(clocks) {}

  /// The time, and the piece it comes from for `clock`.
  std::int64_t read(ThreadClock& clock) noexcept {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::unstarted) start();
    if (phase_ == Phase::calibrating && !calibrate()) {
      // Kept from falling here, because the system may set its clock back just now.
      floor_ = std::max(floor_, clocks_.wall());
      return floor_;
    }
    for (int attempt = 0;; ++attempt) {
      const std::uint64_t ticks = clocks_.counter();
      if (ticks - latest_.start < latest_.span) return hand_out(clock, latest_, latest_.span, ticks);
      if (!before(ticks, latest_.start)) {
        correct();
      } else if (!before(ticks, previous_.start)) {
        return hand_out(clock, previous_, latest_.start - previous_.start, ticks);
      } else if (attempt >= 100) {
        restart();
      }
    }
  }

  void correct_early() noexcept {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::running) return;
    const std::uint64_t ticks = clocks_.counter();
    const bool half_over = !before(ticks, latest_.start + latest_.span / 2);
    if (half_over) correct();
  }

 private:
  Sample take_sample(int attempts) noexcept {
    const auto counter = [this]() noexcept { return clocks_.counter(); };
    Sample sample;
    const std::uint64_t first = pair_up(
        counter, [this]() noexcept { return clocks_.monotonic(); }, attempts, sample.ticks, sample.monotonic);
    const std::uint64_t second = pair_up(
        counter, [this]() noexcept { return clocks_.wall(); }, attempts, sample.wall_ticks, sample.wall);
    sample.uncertainty = std::max(first, second);
    return sample;
  }

  enum class Phase { unstarted, calibrating, running };

  static std::int64_t hand_out(ThreadClock& clock, const Piece& piece, std::uint64_t span,
                               std::uint64_t ticks) noexcept {
    clock.start = piece.start;
    clock.span = span;
    clock.rate = piece.rate;
    clock.origin = piece.origin;
    return piece.at(ticks);
  }

  void start() noexcept {
    const bool counter = clocks_.counter_is_usable();
    clocks_.use_counter(counter);
    last_ = take_sample(counter ? 32 : 1);
    if (counter) {
      phase_ = Phase::calibrating;
    } else {
      begin(last_, 1.0);
    }
  }

  /// Whether there are pieces now.
  bool calibrate() noexcept {
    if (clocks_.monotonic() - last_.monotonic < calibration_ns) return false;
    Sample sample = take_sample(32);
    double rate =
        static_cast<double>(sample.monotonic - last_.monotonic) / static_cast<double>(sample.ticks - last_.ticks);
    if (!(rate > 0.05 && rate < 100)) {  // no counter of 10 MHz to 20 GHz
      clocks_.use_counter(false);
      sample = take_sample(1);
      rate = 1.0;
    }
    begin(sample, rate);
    return true;
  }

  void begin(const Sample& sample, double ns_per_tick) noexcept {
    phase_ = Phase::running;
    base_rate_ = ns_per_tick;
    set_latest(sample.wall_ticks, std::max(floor_, sample.wall), base_rate_);
    previous_ = latest_;
    remember(sample);
  }

  /// Adds the next piece: behind the latest one, or from now on when that is over.
  void correct() noexcept {
    const Sample sample = take_sample(5);
    const double ticks_passed = static_cast<double>(sample.ticks - last_.ticks);
    const double ns_passed = static_cast<double>(sample.monotonic - last_.monotonic);
    const double measured = ns_passed / ticks_passed;
    // Brackets wider than 2 us say that we were interrupted each time. Then the known rate stays, unless the interval
    // is so long that even this measures it well.
    const bool precise = static_cast<double>(sample.uncertainty) * base_rate_ < std::max(2e3, ns_passed * 1e-6);
    const bool plausible = std::abs(measured / base_rate_ - 1) < plausible_change;
    if (precise && !plausible) return after_jump(sample, measured);

    double rate = base_rate_;
    if (precise) {
      jumped_ = false;
      if (ns_passed > 1e6) base_rate_ = measured;
      const double error = static_cast<double>(sample.wall - extrapolate(sample.wall_ticks));
      rate = base_rate_ * (1 + std::clamp(error / steering_ns, -steering_limit, steering_limit));
    }
    const std::uint64_t start = close_latest(sample.ticks, base_rate_);
    set_latest(start, previous_.at(start), rate);
    if (precise) remember(sample);
  }

  /// Counter and system clock do not agree about the time that has passed: the machine slept, or was moved. Nobody has
  /// seen a time behind the latest piece, so the next one may begin where the system clock says.
  void after_jump(const Sample& sample, double measured) noexcept {
    // Twice in a row: the counter itself has another rate now.
    if (jumped_ && measured > 0.05 && measured < 100) base_rate_ = measured;
    jumped_ = true;
    const std::int64_t reached = latest_.at(latest_.end());
    const std::int64_t expected = last_value_ + (sample.monotonic - last_.monotonic);
    const std::uint64_t start = close_latest(sample.ticks, 0);
    set_latest(start, std::max(reached, expected), base_rate_);
    remember(sample);
  }

  /// Time at a counter value not below the latest piece; behind its end the rate is no longer bent.
  std::int64_t extrapolate(std::uint64_t ticks) const noexcept {
    if (!before(latest_.end(), ticks)) return latest_.at(ticks);
    return latest_.at(latest_.end()) + ticks_to_ns(ticks - latest_.end(), fixed_rate(base_rate_));
  }

  /// Makes the latest piece the previous one and returns where the next one starts: at its end, or at `ticks` when that
  /// has passed. Then the previous piece becomes the gap, in which nobody has read yet, and has the given rate.
  std::uint64_t close_latest(std::uint64_t ticks, double gap_rate) noexcept {
    const std::uint64_t end = latest_.end();
    previous_ = latest_;
    if (!before(end, ticks)) return end;
    previous_ = Piece{end, ticks - end, fixed_rate(gap_rate), latest_.at(end)};
    return ticks;
  }

  /// The counter was set back.
  void restart() noexcept {
    const Sample sample = take_sample(5);
    const std::int64_t reached = latest_.at(latest_.end());
    const std::int64_t expected = last_value_ + (sample.monotonic - last_.monotonic);
    set_latest(sample.ticks, std::max(reached, expected), base_rate_);
    previous_ = latest_;
    remember(sample);
  }

  void set_latest(std::uint64_t start, std::int64_t origin, double ns_per_tick) noexcept {
    latest_ =
        Piece{start, static_cast<std::uint64_t>(piece_ns[length_] / ns_per_tick), fixed_rate(ns_per_tick), origin};
    if (length_ + 1 < std::size(piece_ns)) ++length_;
  }

  void remember(const Sample& sample) noexcept {
    last_ = sample;
    const Piece& piece = before(sample.ticks, latest_.start) ? previous_ : latest_;
    last_value_ = before(sample.ticks, piece.start) ? piece.origin : piece.at(sample.ticks);
  }

  Clocks clocks_;
  std::mutex mutex_;
  Phase phase_ = Phase::unstarted;
  bool jumped_ = false;
  std::size_t length_ = 0;
  std::int64_t floor_ = std::numeric_limits<std::int64_t>::min();
  Sample last_;
  std::int64_t last_value_ = 0;  ///< time at `last_`
  double base_rate_ = 1.0;       ///< nanoseconds per counter step, unbent
  Piece latest_;
  Piece previous_;
};

}  // namespace abxbus::detail

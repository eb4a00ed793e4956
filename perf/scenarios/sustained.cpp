#include "harness/clock.hpp"
#include "harness/statistics.hpp"
#include "scenarios/scenarios.hpp"
#include "scenarios/support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace abxbus::perf {

struct SustainedEvent {
  std::uint32_t producer = 0;
  std::uint32_t neighbour_done = 0;  ///< events of the next producer whose emit had returned before this emit began
  std::uint64_t sequence = 0;
};

namespace {

constexpr std::size_t history_size = 128;
constexpr std::uint64_t all_events = 5'000'000;
constexpr std::uint64_t quick_events = 500'000;
constexpr std::uint64_t early_events = 50'000;  ///< after so many the live memory must have reached its final level
constexpr std::uint64_t probe_events = 1'024;
constexpr std::uint64_t sampled_every = 64;  ///< so that measuring does not change the figure

struct alignas(64) Counter {
  std::atomic<std::uint32_t> value{0};
};

/// The only handler's view: every producer's events in order, and everything in one order that agrees with what
/// happened before what (S-MT-2). A serial bus runs it one event at a time.
class OrderChecker {
 public:
  explicit OrderChecker(std::size_t producers) : handled_(producers, 0) {}

  void handle(const SustainedEvent& event) {
    std::uint64_t& expected = handled_[event.producer];
    const std::uint64_t neighbour = handled_[(event.producer + 1) % handled_.size()];
    if (event.sequence != expected || neighbour < event.neighbour_done) ++disorder_;
    expected = event.sequence + 1;
    last_[total_ % history_size] = {event.producer, event.sequence};
    ++total_;
  }

  std::uint64_t total() const { return total_; }

  // History is the order of acceptance, `last_` the order of handling: they must be the same.
  void check_order(const EventBus& bus) const {
    check_equal("events out of order", disorder_, 0);
    const std::vector<BaseEvent> history = bus.event_history().events();
    check_equal("events in history", history.size(), history_size);
    for (std::size_t i = 0; i < history.size(); ++i) {
      const auto event = history[i].payload_as<SustainedEvent>();
      const Seen& seen = last_[(total_ + i) % history_size];
      check(event.producer == seen.producer && event.sequence == seen.sequence, "history and handling differ in order");
    }
  }

 private:
  struct Seen {
    std::uint32_t producer = 0;
    std::uint64_t sequence = 0;
  };
  std::vector<std::uint64_t> handled_;  ///< a producer; the last one is the main thread, which probes
  std::array<Seen, history_size> last_{};
  std::uint64_t total_ = 0;
  std::uint64_t disorder_ = 0;
};

/// What a level may be: it moves a little within one history length and one segment of the bus's log.
struct Level {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  bool contains(std::int64_t bytes) const { return least <= bytes && bytes <= most; }
};

class Load {
 public:
  Load(std::size_t producers, std::uint64_t events)
      : producers_(producers),
        events_(events),
        checker_(producers + 1),
        done_(producers),
        latencies_(producers),
        bus_("Sustained", dropping(history_size)) {
    const std::uint64_t each = events / producers / sampled_every + 2;
    for (std::vector<double>& samples : latencies_) samples.reserve(static_cast<std::size_t>(each));
    bus_.on<SustainedEvent>([this](const SustainedEvent& event) { checker_.handle(event); });
  }

  void run() {
    std::int64_t total_ns = emit_all(0, early_events);
    const Level level = probe_level();
    total_ns += emit_all(early_events, events_);
    total_ns_ = total_ns;
    check_equal("events handled", checker_.total(), events_ + probe_events);
    checker_.check_order(bus_);
    const bool constant = eventually([&] { return level.contains(bus_.memory().live_bytes); });
    memory_ = bus_.memory();
    check(constant, "live memory is " + std::to_string(memory_.live_bytes) + " bytes at the end, was " +
                        std::to_string(level.least) + " to " + std::to_string(level.most) + " after 50 000 events");
  }

  std::int64_t total_ns() const { return total_ns_; }
  const MemoryUse& memory() const { return memory_; }

  void report(std::vector<Extra>& extra) {
    std::vector<double> all;
    for (const std::vector<double>& samples : latencies_) all.insert(all.end(), samples.begin(), samples.end());
    const std::string group = "producers_" + std::to_string(producers_);
    const auto add = [&](const char* name, double value) { extra.push_back({group, name, value}); };
    add("producers", static_cast<double>(producers_));
    add("ns_per_event", static_cast<double>(total_ns_) / static_cast<double>(events_));
    add("emit_p50_ns", percentile(all, 0.5));
    add("emit_p99_ns", percentile(all, 0.99));
    add("emit_p99.9_ns", percentile(all, 0.999));
    add("peak_bytes", static_cast<double>(memory_.peak_bytes));
  }

 private:
  /// Events `from` to `to` of the whole, divided among the producers; returns when the last is handled.
  std::int64_t emit_all(std::uint64_t from, std::uint64_t to) {
    const TickScale scale;
    std::barrier start(static_cast<std::ptrdiff_t>(producers_ + 1));
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < producers_; ++p) {
      threads.emplace_back([this, p, from, to, &start] {
        start.arrive_and_wait();
        emit_share(p, share_begin(from, p), share_begin(to, p));
      });
    }
    start.arrive_and_wait();
    const Stopwatch watch;
    for (std::thread& thread : threads) thread.join();
    bus_.wait_until_idle();
    const std::int64_t total_ns = watch.elapsed_ns();
    to_nanoseconds(scale.ns_per_tick());
    return total_ns;
  }

  // How many of the first `events` events are producer `p`'s.
  std::uint64_t share_begin(std::uint64_t events, std::size_t p) const {
    return events / producers_ + (p < events % producers_ ? 1 : 0);
  }

  void emit_share(std::size_t producer, std::uint64_t begin, std::uint64_t end) {
    const auto self = static_cast<std::uint32_t>(producer);
    const std::size_t neighbour = (producer + 1) % (producers_ + 1);  // as the checker sees it
    std::vector<double>& samples = latencies_[producer];
    for (std::uint64_t sequence = begin; sequence < end; ++sequence) {
      if (sequence % sampled_every != 0) {
        bus_.emit(SustainedEvent{.producer = self, .sequence = sequence});
        continue;
      }
      const std::uint32_t neighbour_done =
          neighbour < producers_ ? done_[neighbour].value.load(std::memory_order_acquire) : 0;
      const std::uint64_t before = ticks();
      bus_.emit(SustainedEvent{.producer = self, .neighbour_done = neighbour_done, .sequence = sequence});
      samples.push_back(static_cast<double>(ticks() - before));
      done_[producer].value.store(static_cast<std::uint32_t>(sequence + 1), std::memory_order_release);
    }
  }

  void to_nanoseconds(double ns_per_tick) {
    for (std::size_t p = 0; p < producers_; ++p) {
      std::vector<double>& samples = latencies_[p];
      std::for_each(samples.begin() + static_cast<std::ptrdiff_t>(converted_[p]), samples.end(),
                    [&](double& sample) { sample *= ns_per_tick; });
      converted_[p] = samples.size();
    }
  }

  Level probe_level() {
    Level level;
    const auto self = static_cast<std::uint32_t>(producers_);
    for (std::uint64_t i = 0; i < probe_events; ++i) {
      bus_.emit(SustainedEvent{.producer = self, .sequence = i}).now();
      const std::int64_t bytes = bus_.memory().live_bytes;
      level.least = std::min(level.least, bytes);
      level.most = std::max(level.most, bytes);
    }
    return level;
  }

  std::size_t producers_;
  std::uint64_t events_;
  OrderChecker checker_;
  std::vector<Counter> done_;
  std::vector<std::vector<double>> latencies_;  ///< ticks, then nanoseconds, of every 64th emit of a producer
  std::vector<std::size_t> converted_ = std::vector<std::size_t>(latencies_.size(), 0);
  std::int64_t total_ns_ = 0;
  MemoryUse memory_;
  EventBus bus_;  // last: ends before what its handler uses
};

}  // namespace

// P-SCN-9: as many events as the producers can emit, nobody waits until the end.
Sample sustained(const Run& run) {
  const std::uint64_t events = run.quick ? quick_events : all_events;
  Sample sample;
  double peak_bytes = 0;
  for (const std::size_t producers : {1, 4, 16}) {
    run.progress.step(std::to_string(producers) + " producers");
    Load load(producers, events);
    load.run();
    load.report(sample.extra);
    sample.total_ns += load.total_ns();
    sample.count += static_cast<std::int64_t>(events);
    sample.live_bytes_per_unit = load.memory().bytes_per_event;
    peak_bytes = std::max(peak_bytes, static_cast<double>(load.memory().peak_bytes));
  }
  sample.peak_bytes_per_unit = peak_bytes / static_cast<double>(events);
  return sample;
}

}  // namespace abxbus::perf

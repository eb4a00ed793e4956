// Many threads emit: one order, nothing lost, nothing twice, nobody held up.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Numbered {
  int thread = 0;
  int number = 0;
};
struct Blocker {};
struct Late {
  int value = 0;
};

EventBusOptions unlimited() {
  return {.max_history_size = std::nullopt};
}

}  // namespace

TEST_CASE("one order of acceptance for queue and history", "[S-MT-2]") {
  constexpr int threads = 4;
  constexpr int each = 250;
  std::vector<std::array<int, 2>> handled;  // plain: serial handlers
  EventBus bus("MtOneOrder", unlimited());
  bus.on<Numbered>([&](const Numbered& event) { handled.push_back({event.thread, event.number}); });
  {
    std::vector<std::unique_ptr<Caller>> emitters;
    for (int thread = 0; thread < threads; ++thread)
      emitters.push_back(std::make_unique<Caller>([&, thread] {
        for (int number = 0; number < each; ++number) bus.emit(Numbered{thread, number});
      }));
  }
  REQUIRE(bus.wait_until_idle());

  REQUIRE(handled.size() == threads * each);
  std::vector<std::array<int, 2>> history;
  for (const BaseEvent& event : bus.event_history().events()) {
    const auto numbered = event.payload_as<Numbered>();
    history.push_back({numbered.thread, numbered.number});
  }
  REQUIRE(history == handled);
  std::array<int, threads> next{};
  bool in_order = true;
  for (const auto& [thread, number] : handled)
    in_order = in_order && next[static_cast<std::size_t>(thread)]++ == number;
  REQUIRE(in_order);
}

TEST_CASE("an emit that returned before another began precedes it", "[S-MT-2]") {
  constexpr int turns = 1000;
  std::vector<int> handled;
  std::atomic<int> baton = 0;
  EventBus bus("MtBaton", unlimited());
  bus.on<Numbered>([&](const Numbered& event) { handled.push_back(event.number); });
  {
    std::vector<std::unique_ptr<Caller>> emitters;
    for (int thread = 0; thread < 2; ++thread)
      emitters.push_back(std::make_unique<Caller>([&, thread] {
        for (int turn = thread; turn < turns; turn += 2) {
          while (baton.load() != turn) std::this_thread::yield();
          bus.emit(Numbered{thread, turn});
          baton.store(turn + 1);
        }
      }));
  }
  REQUIRE(bus.wait_until_idle());
  REQUIRE(handled.size() == turns);
  REQUIRE(std::is_sorted(handled.begin(), handled.end()));
}

TEST_CASE("the queue of a busy bus is in acceptance order too", "[S-MT-2]") {
  constexpr int threads = 3;
  constexpr int each = 60;
  Gate gate;
  EventBus bus("MtQueueOrder", unlimited());
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  OpenAtExit guard(gate);
  auto blocker = bus.emit(Blocker{});
  REQUIRE(gate.wait_for_arrivals(1));
  {
    std::vector<std::unique_ptr<Caller>> emitters;
    for (int thread = 0; thread < threads; ++thread)
      emitters.push_back(std::make_unique<Caller>([&, thread] {
        for (int number = 0; number < each; ++number) bus.emit(Numbered{thread, number});
      }));
  }
  std::vector<Uuid> history;
  for (const BaseEvent& event : bus.event_history().events())
    if (!(event == blocker)) history.push_back(event.event_id());
  REQUIRE(history.size() == threads * each);
  REQUIRE(bus.pending_event_queue() == history);
  gate.open();
  REQUIRE(bus.wait_until_idle());
}

TEST_CASE("the same event emitted by many threads is accepted once", "[S-MT-3]") {
  constexpr int threads = 4;
  std::atomic<int> calls = 0;
  EventBus bus("MtSameEvent", unlimited());
  bus.on<Numbered>([&](const Numbered&) { ++calls; });
  const std::vector<std::string> path{bus.label()};

  for (int round = 1; round <= 40; ++round) {
    const auto event = make_event(Numbered{});
    {
      std::vector<std::unique_ptr<Caller>> emitters;
      for (int thread = 0; thread < threads; ++thread)
        emitters.push_back(std::make_unique<Caller>([&] { bus.emit(event); }));
    }
    event.wait();
    REQUIRE(bus.wait_until_idle());
    REQUIRE(calls == round);
    REQUIRE(event.event_path() == path);
    REQUIRE(event.event_pending_bus_count() == 0);
    REQUIRE(bus.event_history().size() == static_cast<std::size_t>(round));
  }
}

TEST_CASE("the same event emitted on two buses is accepted once by each", "[S-MT-3]") {
  std::atomic<int> first_calls = 0;
  std::atomic<int> second_calls = 0;
  std::atomic<Gate*> emitted = nullptr;
  EventBus first("MtTwoBusesFirst", unlimited());
  EventBus second("MtTwoBusesSecond", unlimited());
  // The event is not over before all have emitted it: a bus does not run what is completed already (S-EMIT-12).
  first.on<Numbered>([&](const Numbered&) {
    emitted.load()->wait();
    ++first_calls;
  });
  second.on<Numbered>([&](const Numbered&) {
    emitted.load()->wait();
    ++second_calls;
  });
  std::vector<std::string> labels{first.label(), second.label()};
  std::sort(labels.begin(), labels.end());

  for (int round = 1; round <= 40; ++round) {
    const auto event = make_event(Numbered{});
    Gate gate;
    const OpenAtExit open(gate);
    emitted = &gate;
    {
      Caller a([&] { first.emit(event); });
      Caller b([&] { second.emit(event); });
      Caller c([&] { first.emit(event); });
      Caller d([&] { second.emit(event); });
    }
    gate.open();
    event.wait();
    REQUIRE(first.wait_until_idle());
    REQUIRE(second.wait_until_idle());
    std::vector<std::string> path = event.event_path();
    std::sort(path.begin(), path.end());
    REQUIRE(path == labels);
    REQUIRE(first_calls == round);
    REQUIRE(second_calls == round);
    REQUIRE(event.event_results().size() == 2);
  }
}

TEST_CASE("producers are not held up by blocked handlers", "[S-MT-7]") {
  constexpr int events = 2000;
  Gate gate;
  std::atomic<int> handled = 0;
  EventBus bus("MtProducers", unlimited());
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  bus.on<Numbered>([&](const Numbered&) { ++handled; });
  OpenAtExit guard(gate);
  bus.emit(Blocker{});
  REQUIRE(gate.wait_for_arrivals(1));

  const double seconds = duration_of([&] {
    std::vector<std::unique_ptr<Caller>> emitters;
    for (int thread = 0; thread < 2; ++thread)
      emitters.push_back(std::make_unique<Caller>([&, thread] {
        for (int number = 0; number < events / 2; ++number) bus.emit(Numbered{thread, number});
      }));
  });
  REQUIRE(seconds < 3.0);
  REQUIRE(handled == 0);
  REQUIRE(bus.pending_event_queue().size() == events);
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(handled == events);
}

TEST_CASE("producers are not held up by blocked parallel handlers", "[S-MT-7]") {
  constexpr int events = 50;
  Gate gate;
  EventBus bus("MtProducersParallel",
               {.event_concurrency = EventConcurrency::parallel, .max_history_size = std::nullopt});
  bus.on<Blocker>([&](const Blocker&) { gate.wait(); });
  OpenAtExit guard(gate);
  const double seconds = duration_of([&] {
    for (int i = 0; i < events; ++i) bus.emit(Blocker{});
  });
  REQUIRE(seconds < 3.0);
  REQUIRE(bus.event_history().size() == events);
  gate.open();
  REQUIRE(bus.wait_until_idle());
}

TEST_CASE("emits from handlers of several buses: nothing lost", "[S-MT-2]") {
  constexpr int events = 150;
  std::atomic<int> sum = 0;
  EventBus sink("MtSink", unlimited());
  EventBus left("MtLeft", unlimited());
  EventBus right("MtRight", {.event_concurrency = EventConcurrency::parallel, .max_history_size = std::nullopt});
  sink.on<Late>([&](const Late& late) { sum += late.value; });
  left.on<Numbered>([&](const Numbered& event) { sink.emit(Late{event.number}); });
  right.on<Numbered>([&](Event<Numbered> event) -> abxbus::task<> {
    sink.emit(Late{event->number});
    co_return;
  });
  for (int i = 1; i <= events; ++i) {
    left.emit(Numbered{0, i});
    right.emit(Numbered{1, i});
  }
  REQUIRE(left.wait_until_idle());
  REQUIRE(right.wait_until_idle());
  REQUIRE(sink.wait_until_idle());
  REQUIRE(sum == events * (events + 1));
  REQUIRE(sink.event_history().size() == 2 * events);
}

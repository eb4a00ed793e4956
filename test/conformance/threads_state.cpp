// What other threads see: consistent results, one completion, effects in order.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Work {
  using event_result_type = std::string;
};
struct Step {
  int number = 0;
};
struct Filled {
  std::shared_ptr<int> cell;
};

EventBusOptions unlimited() {
  return {.max_history_size = std::nullopt};
}

bool consistent(const EventResult& result) {
  const EventResultStatus status = result.status();
  if (status == EventResultStatus::started) return result.started_at().has_value();
  if (status == EventResultStatus::completed)
    return result.completed_at() && result.started_at() && result.result_as<std::string>().has_value() &&
           !result.error();
  if (status == EventResultStatus::error)
    return result.completed_at() && result.started_at() && result.error() && !result.error_message().empty();
  return true;
}

int rank(EventStatus status) {
  return status == EventStatus::pending ? 0 : status == EventStatus::started ? 1 : 2;
}

}  // namespace

TEST_CASE("a reader never sees a terminal result without its value or error", "[S-MT-1]") {
  constexpr int rounds = 120;
  std::atomic<int> broken = 0;
  std::atomic<int> looks = 0;
  EventBus bus("MtReaders",
               {.event_handler_concurrency = EventHandlerConcurrency::parallel, .max_history_size = std::nullopt});
  bus.on<Work>([](const Work&) -> std::string { return "a value too long for the small string optimisation"; });
  bus.on<Work>([](const Work&) -> std::string { throw std::runtime_error("failed"); });
  bus.on<Work>([](const Work&) -> abxbus::task<std::string> { co_return "coroutine"; });
  for (int round = 0; round < rounds; ++round) {
    auto event = bus.emit(Work{});
    Caller reader([&, event] {
      for (bool last = false; !last;) {
        last = completed(event);
        for (const EventResult& result : event.event_results()) {
          if (!consistent(result)) ++broken;
          if (last && !result.completed_at()) ++broken;
        }
        if (last && !event.event_completed_at()) ++broken;
        if (event.event_errors().size() > 1) ++broken;
        ++looks;
      }
    });
    event.wait();
  }
  REQUIRE(broken == 0);
  REQUIRE(looks >= rounds);
}

TEST_CASE("everything may be called while events are processed", "[S-MT-1]") {
  std::atomic<bool> going = true;
  std::atomic<int> odd = 0;
  EventBus bus("MtEverything", {.max_history_size = 50, .max_history_drop = true});
  const EventHandler handler = bus.on<Work>([](const Work&) -> std::string { return "done"; });
  {
    Caller inspector([&] {
      while (going) {
        if (bus.name() != "MtEverything" || bus.handler_count() < 1 || bus.handlers().empty()) ++odd;
        if (bus.event_history().size() > 60) ++odd;
        static_cast<void>(bus.pending_event_queue());
        static_cast<void>(bus.handlers_by_key());
        static_cast<void>(bus.events_pending().size() + bus.events_started().size() + bus.events_completed().size());
        static_cast<void>(bus.is_idle());
        static_cast<void>(bus.memory());
        static_cast<void>(bus.options());
        static_cast<void>(bus.find<Work>());
      }
    });
    Caller settings([&] {
      while (going) {
        handler.set_handler_timeout(30s);
        handler.set_handler_slow_timeout(std::nullopt);
        for (const BaseEvent& event : bus.event_history().events()) {
          event.set_event_timeout(20s);
          event.set_event_handler_completion(std::nullopt);
          static_cast<void>(event.event_path());
          static_cast<void>(event.event_type());
        }
        static_cast<void>(handler.id());
      }
    });
    Caller registry([&] {
      while (going) {
        EventBus passing("MtPassing");
        static_cast<void>(EventBus::all_instances().size());
        passing.emit(Work{}).now();
      }
    });
    for (int i = 0; i < 400; ++i) {
      auto event = bus.emit(Work{});
      if (i % 3 == 0) event.now();
    }
    bus.wait_until_idle();
    going = false;
  }
  REQUIRE(odd == 0);
}

TEST_CASE("serial handlers may share unsynchronised state", "[S-MT-4]") {
  constexpr int threads = 3;
  constexpr int each = 150;
  int counter = 0;  // plain, on purpose, as is everything below that handlers touch
  std::string text;
  EventBus bus("MtPlainState", unlimited());
  bus.on<Step>([&](const Step&) { ++counter; });
  bus.on<Step>([&](const Step&) -> abxbus::task<> {
    ++counter;
    text += 'x';
    co_return;
  });
  {
    std::vector<std::unique_ptr<Caller>> emitters;
    for (int thread = 0; thread < threads; ++thread)
      emitters.push_back(std::make_unique<Caller>([&] {
        for (int i = 0; i < each; ++i) {
          auto event = bus.emit(Step{i});
          if (i % 10 == 0) event.wait();
        }
      }));
  }
  REQUIRE(bus.wait_until_idle());
  REQUIRE(counter == 2 * threads * each);
  REQUIRE(text.size() == static_cast<std::size_t>(threads * each));
}

TEST_CASE("global-serial runs of a domain may share unsynchronised state", "[S-MT-4]") {
  constexpr int each = 150;
  int counter = 0;
  const EventBusOptions options{
      .event_concurrency = EventConcurrency::global_serial, .max_history_size = std::nullopt, .domain = Domain()};
  EventBus first("MtGlobalFirst", options);
  EventBus second("MtGlobalSecond", options);
  for (EventBus* bus : {&first, &second}) bus->on<Step>([&](const Step&) { ++counter; });
  {
    Caller one([&] {
      for (int i = 0; i < each; ++i) first.emit(Step{i});
    });
    Caller two([&] {
      for (int i = 0; i < each; ++i) second.emit(Step{i});
    });
  }
  REQUIRE(first.wait_until_idle());
  REQUIRE(second.wait_until_idle());
  REQUIRE(counter == 2 * each);
}

TEST_CASE("before emit, in the handler, after the wait: one order", "[S-MT-4]") {
  int wrong = 0;
  EventBus bus("MtHappensBefore", unlimited());
  bus.on<Filled>([](const Filled& filled) { *filled.cell += 1; });
  for (int i = 0; i < 300; ++i) {
    const auto cell = std::make_shared<int>(i);
    *cell += 1;
    auto event = bus.emit(Filled{cell});
    switch (i % 4) {
      case 0:
        event.now();
        break;
      case 1:
        event.wait();
        break;
      case 2:
        bus.wait_until_idle();
        break;
      default:
        event.event_results_list<int>();
        break;
    }
    if (*cell != i + 2) ++wrong;
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("a nested run happens before now returns to its handler", "[S-MT-4]") {
  int plain = 0;
  std::atomic<int> wrong = 0;
  EventBus bus("MtNestedOrder", unlimited());
  bus.on<Step>([&](const Step&) { ++plain; });
  bus.on<Work>([&](Event<Work> event) -> std::string {
    const int before = plain;
    event.emit(Step{}).now();
    if (plain != before + 1) ++wrong;
    return "done";
  });
  for (int i = 0; i < 100; ++i) bus.emit(Work{});
  REQUIRE(bus.wait_until_idle());
  REQUIRE(wrong == 0);
  REQUIRE(plain == 100);
}

TEST_CASE("several buses finish at once: one completion, status never backwards", "[S-MT-11]") {
  constexpr int buses = 4;
  constexpr int rounds = 40;
  std::atomic<int> wrong = 0;
  std::atomic<int> inside = 0;
  std::vector<std::unique_ptr<EventBus>> all;
  for (int i = 0; i < buses; ++i) {
    all.push_back(std::make_unique<EventBus>("MtFinish" + std::to_string(i), EventBusOptions{.max_history_size = 0}));
    all.back()->on<Work>([&](const Work&) -> std::string {
      ++inside;
      const auto end = Clock::now() + 200ms;  // leave together if possible
      while (inside < buses && Clock::now() < end) std::this_thread::yield();
      return "done";
    });
  }
  for (int round = 0; round < rounds; ++round) {
    inside = 0;
    const auto event = make_event(Work{});
    std::atomic<int> released = 0;
    {
      Caller watcher([&] {
        int highest = 0;
        while (highest < 2) {
          const int seen = rank(event.event_status());
          if (seen < highest) ++wrong;
          highest = std::max(highest, seen);
          if (seen == 2 && (event.event_pending_bus_count() != 0 || !event.event_completed_at())) ++wrong;
        }
      });
      for (auto& bus : all) bus->emit(event);
      Caller waiter([&] {
        event.wait();
        ++released;
        for (const EventResult& result : event.event_results())
          if (result.status() != EventResultStatus::completed) ++wrong;
        for (auto& bus : all)
          if (bus->event_history().has_event(event.event_id())) ++wrong;
      });
    }
    REQUIRE(released == 1);
    REQUIRE(event.event_results().size() == buses);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("the lock is passed on after the waiters' event is complete", "[S-MT-11]") {
  std::atomic<int> wrong = 0;
  std::optional<Event<Step>> previous;  // plain: handed from one serial run to the next
  EventBus bus("MtCompletionOrder", unlimited());
  bus.on<Step>([&](Event<Step> event) {
    if (previous && (!completed(*previous) || !previous->event_completed_at())) ++wrong;
    if (previous && *previous->event_completed_at() > *event.event_started_at()) ++wrong;
    previous = event;
  });
  for (int i = 0; i < 300; ++i) bus.emit(Step{i});
  REQUIRE(bus.wait_until_idle());
  REQUIRE(wrong == 0);
}

// A parent is cut short while a child that it waits for is open: what becomes of the child, and of what is not waited
// for.

#include "support/catch.hpp"
#include "support/results.hpp"
#include "support/testing.hpp"
#include "support/watchdog.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct Parent {};
struct Child {};
struct Grandchild {};
struct Loose {};
struct Tail {};

const EventBusOptions roomy = {.max_history_size = std::nullopt};

bool completed(const BaseEvent& event) {
  return event.event_status() == EventStatus::completed;
}

template <class E>
const E& error_of(const BaseEvent& event, const std::string& name) {
  const EventResult result = result_of(event, name);
  const E* const error = error_as<E>(result.error());
  if (error == nullptr) throw std::runtime_error(name + ": " + error_name(result.error()));
  return *error;
}

/// A handler that only ends when it is stopped.
int until_stopped(const std::stop_token& stop) {
  wait_until_stopped(stop);
  return 0;
}

HandlerOptions named(std::string name) {
  HandlerOptions options;
  options.handler_name = std::move(name);
  return options;
}

}  // namespace

TEST_CASE("an event timeout cancels the children that are waited for, and no others",
          "[T-NST-1][T-NST-2][T-NST-3][T-NST-4][T-NST-5][T-NST-6][T-NST-7][T-NST-12][S-JMP-15][T-CAN-6][H-LIN-17]") {
  EventBus bus("NestedEvent", roomy);
  Recorder log;
  std::optional<Event<Child>> child;
  std::optional<Event<Loose>> loose;
  std::atomic<bool> child_stopped{false};
  std::string released_with;
  bus.on<Parent>(
      [&](Event<Parent> parent) {
        loose = parent.emit(Loose{});
        child = parent.emit(Child{}, {.event_timeout = 5s});
        released_with = error_name(testing::thrown_by([&]() -> void { child->now(); }));
        log.add("released");
      },
      named("first"));
  bus.on<Parent>([&](const Parent&) { log.add("second"); }, named("second"));
  bus.on<Child>(
      [&](const Child&, std::stop_token stop) {
        child_stopped = wait_until_stopped(stop);
        log.add("child stopped");
      },
      named("slow"));
  bus.on<Child>([&](const Child&) { log.add("fast"); }, named("fast"));
  bus.on<Loose>([](const Loose&) { return 7; });

  const auto parent = bus.emit(Parent{}, {.event_timeout = 50ms});
  parent.wait();
  REQUIRE(log.wait_for_size(2));

  const auto& aborted = error_of<EventHandlerAbortedError>(parent, "first");
  CHECK(std::string(aborted.what()) == "Aborted running handler due to event timeout");
  CHECK(number(aborted.timeout_seconds()) == Approx(0.05));
  CHECK(std::string(error_of<EventHandlerCancelledError>(parent, "second").what()) ==
        "Cancelled pending handler due to event timeout");
  REQUIRE(aborted.cause());
  const std::string cause = error_message(aborted.cause());
  CHECK_THAT(cause,
             test::contains(".on(Parent#") && test::contains(", first") && test::contains(") timed out after 0.05s"));

  REQUIRE(completed(*child));
  CHECK(child->event_pending_bus_count() == 0);
  CHECK(child->event_completed_at() <= parent.event_completed_at());
  const auto& slow = error_of<EventHandlerAbortedError>(*child, "slow");
  CHECK(slow.what() == "Aborted running handler due to parent error: " + cause);
  CHECK(slow.cause() == aborted.cause());
  CHECK(number(slow.timeout_seconds()) == 5);
  const auto& fast = error_of<EventHandlerCancelledError>(*child, "fast");
  CHECK(fast.what() == "Cancelled pending handler due to parent error: " + cause);
  CHECK(fast.cause() == aborted.cause());
  CHECK(number(fast.timeout_seconds()) == 5);
  CHECK(child_stopped);
  CHECK(released_with == "OperationCancelled");

  CHECK(loose->wait().event_result<int>() == std::optional<int>(7));
  CHECK(loose->event_parent_id() == std::optional<Uuid>(parent.event_id()));
  CHECK_FALSE(loose->event_blocks_parent_completion());
  CHECK_FALSE(log.contains("second"));
  CHECK_FALSE(log.contains("fast"));
}

TEST_CASE("a handler timeout cancels its own children; the next handler runs", "[T-NST-1][T-NST-5][T-NST-8]") {
  EventBus bus("NestedHandler", roomy);
  std::optional<Event<Child>> child;
  bus.on<Parent>(
      [&](Event<Parent> parent) {
        child = parent.emit(Child{});
        child->now();
      },
      named("first"));
  bus.on<Parent>([](const Parent&) { return 2; }, named("second"));
  bus.on<Child>([](const Child&, std::stop_token stop) { return until_stopped(stop); }, named("slow"));
  bus.on<Child>([](const Child&) {}, named("fast"));
  const auto parent = bus.emit(Parent{}, {.event_timeout = 0s, .event_handler_timeout = 50ms});
  parent.wait();

  const EventResult first = result_of(parent, "first");
  CHECK(first.error_type() == "EventHandlerTimeoutError");
  const auto& slow = error_of<EventHandlerAbortedError>(*child, "slow");
  CHECK(slow.what() == "Aborted running handler due to parent error: " + first.error_message());
  CHECK(slow.cause() == first.error());
  CHECK_FALSE(slow.timeout_seconds().has_value());
  CHECK(error_of<EventHandlerCancelledError>(*child, "fast").cause() == first.error());
  CHECK(result_of(parent, "second").result_as<int>() == std::optional<int>(2));
}

TEST_CASE("a parallel sibling's child is not touched by a handler timeout", "[T-NST-1]") {
  EventBus bus("NestedSibling", {.event_concurrency = EventConcurrency::parallel,
                                 .event_handler_concurrency = EventHandlerConcurrency::parallel,
                                 .max_history_size = std::nullopt});
  Gate started, gate;
  std::optional<Event<Child>> mine;
  std::optional<Event<Grandchild>> other;
  auto late = named("late");
  late.handler_timeout = 30ms;
  bus.on<Parent>(
      [&](Event<Parent> parent) {
        started.wait_for_arrivals(1);  // not before the sibling waits for its child
        mine = parent.emit(Child{});
        mine->now();
      },
      late);
  bus.on<Parent>(
      [&](Event<Parent> parent) {
        other = parent.emit(Grandchild{});
        return *other->now().event_result<int>();
      },
      named("sibling"));
  bus.on<Child>([](const Child&, std::stop_token stop) { return until_stopped(stop); }, named("slow"));
  bus.on<Grandchild>([&](const Grandchild&) {
    started.open();
    started.wait();
    gate.wait();
    return 3;
  });
  const OpenAtEnd guard(started, gate);
  const auto parent = bus.emit(Parent{});
  REQUIRE(
      eventually([&] { return parent.event_results().size() == 2 && result_of(parent, "late").error() != nullptr; }));
  REQUIRE(mine->wait({.timeout = patience}).event_status() == EventStatus::completed);
  CHECK(result_of(*mine, "slow").error_type() == "EventHandlerAbortedError");
  CHECK(other->event_status() == EventStatus::started);
  gate.open();
  parent.wait();
  CHECK(result_of(parent, "sibling").result_as<int>() == std::optional<int>(3));
}

TEST_CASE("a child that expires first ends by its own limit and stays so", "[T-NST-9]") {
  EventBus bus("NestedInner", roomy);
  std::optional<Event<Child>> inner;
  std::optional<Event<Loose>> deep;
  std::atomic<bool> returned{false};  // written by a handler that is cut short: nothing else orders it
  bus.on<Parent>(
      [&](Event<Parent> parent, std::stop_token stop) {
        inner = parent.emit(Child{}, {.event_timeout = 40ms});
        inner->now();
        returned = true;
        return until_stopped(stop);
      },
      named("outer"));
  bus.on<Child>(
      [&](Event<Child> child, std::stop_token stop) {
        deep = child.emit(Loose{});
        return until_stopped(stop);
      },
      named("inner"));
  bus.on<Loose>([](const Loose&) { return 5; });
  const auto parent = bus.emit(Parent{}, {.event_timeout = 150ms});
  parent.wait();
  CHECK(returned);
  CHECK_THAT(std::string(error_of<EventHandlerAbortedError>(*inner, "inner").what()), test::contains("event timeout"));
  CHECK_THAT(std::string(error_of<EventHandlerAbortedError>(parent, "outer").what()), test::contains("event timeout"));
  CHECK(deep->wait().event_result<int>() == std::optional<int>(5));
}

TEST_CASE("a cascade of limits leaves nothing held", "[T-NST-2][T-NST-3][T-NST-10][T-NST-11]") {
  EventBus bus("NestedCascade", roomy);
  std::optional<Event<Child>> child;
  std::optional<Event<Grandchild>> grandchild;
  std::vector<Event<Loose>> loose;
  std::atomic<int> slow_runs{0}, fast_runs{0}, loose_runs{0};
  bus.on<Parent>(
      [&](Event<Parent> parent) {
        loose.push_back(parent.emit(Loose{}));
        child = parent.emit(Child{}, {.event_timeout = 30ms});
        child->now();
        wait_until_stopped(this_handler::stop_token());
      },
      named("top"));
  bus.on<Child>([](const Child&) { return 1; }, named("quick"));
  bus.on<Child>(
      [&](Event<Child> event) {
        loose.push_back(event.emit(Loose{}));
        grandchild = event.emit(Grandchild{}, {.event_timeout = 200ms});
        grandchild->now();
      },
      named("middle"));
  bus.on<Grandchild>(
      [&](const Grandchild&, std::stop_token stop) {
        ++slow_runs;
        return until_stopped(stop);
      },
      named("slow"));
  bus.on<Grandchild>([&](const Grandchild&) { ++fast_runs; }, named("fast"));
  bus.on<Loose>([&](const Loose&) { ++loose_runs; });
  bus.on<Loose>([&](const Loose&) { ++loose_runs; });
  bus.on<Tail>([](const Tail&) { return 9; });

  const auto top = bus.emit(Parent{}, {.event_timeout = 40ms});
  top.wait();
  CHECK(result_of(top, "top").error_type() == "EventHandlerAbortedError");
  CHECK(result_of(*child, "quick").result_as<int>() == std::optional<int>(1));
  CHECK(result_of(*child, "middle").error_type() == "EventHandlerAbortedError");
  CHECK(result_of(*grandchild, "slow").error_type() == "EventHandlerAbortedError");
  CHECK(result_of(*grandchild, "fast").error_type() == "EventHandlerCancelledError");
  CHECK(grandchild->event_completed_at() <= child->event_completed_at());
  CHECK(child->event_completed_at() <= top.event_completed_at());
  CHECK(bus.emit(Tail{}).wait({.timeout = patience}).event_result<int>() == std::optional<int>(9));
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(slow_runs == 1);
  CHECK(fast_runs == 0);
  REQUIRE(loose.size() == 2);
  for (const auto& each : loose) CHECK(completed(each));
  CHECK(loose_runs == 4);
}

TEST_CASE("a cancelled child is taken from every queue, deepest first", "[T-NST-2][T-NST-3][T-CAN-35][H-LIN-17]") {
  EventBus bus("NestedQueued", roomy), busy("NestedBusy", roomy);
  Gate gate, blocked;
  std::optional<Event<Child>> child;
  std::atomic<int> handled{0};
  busy.on<Tail>([&](const Tail&) { blocked.wait(); });
  busy.on<Child>([&](const Child&) { ++handled; }, named("queued"));
  busy.on<Loose>([](const Loose&) { return 4; });
  bus.on<Child>([](const Child&, std::stop_token stop) { return until_stopped(stop); }, named("running"));
  bus.on<Parent>([&](Event<Parent> parent) {
    child = parent.emit(Child{});
    // The busy bus takes it while the awaited run on the first bus goes on: it stays queued there.
    busy.emit(*child);
    child->now();
  });
  const OpenAtEnd guard(gate, blocked);
  auto tail = busy.emit(Tail{});
  REQUIRE(blocked.wait_for_arrivals(1));
  const auto parent = bus.emit(Parent{}, {.event_timeout = 50ms});
  parent.wait({.timeout = patience});
  CHECK(completed(*child));
  CHECK(result_of(*child, "running").error_type() == "EventHandlerAbortedError");
  const auto& queued = error_of<EventHandlerCancelledError>(*child, "queued");
  CHECK_THAT(std::string(queued.what()), test::contains("Cancelled pending handler due to parent error: "));
  CHECK(busy.pending_event_queue().empty());
  CHECK_FALSE(completed(tail));
  // The bus goes on with what comes behind.
  auto behind = busy.emit(Loose{});
  blocked.open();
  CHECK(behind.wait({.timeout = patience}).event_result<int>() == std::optional<int>(4));
  CHECK(handled == 0);
}

TEST_CASE("a loser's awaited children are cancelled, the winner's are not", "[S-FST-9][S-FST-10]") {
  EventBus bus("NestedFirst", {.event_concurrency = EventConcurrency::parallel,
                               .event_handler_concurrency = EventHandlerConcurrency::parallel,
                               .max_history_size = std::nullopt});
  Gate deep;
  std::optional<Event<Child>> child;
  std::optional<Event<Grandchild>> grandchild;
  std::optional<Event<Loose>> loose;
  std::optional<Event<Tail>> winners;
  bus.on<Parent>([&](Event<Parent> parent) -> std::optional<int> {
    loose = parent.emit(Loose{});
    child = parent.emit(Child{});
    child->now();
    return std::nullopt;
  });
  bus.on<Child>(
      [&](Event<Child> event) {
        grandchild = event.emit(Grandchild{});
        grandchild->now();
      },
      named("loser's"));
  bus.on<Grandchild>(
      [&](const Grandchild&, std::stop_token stop) {
        deep.open();
        return until_stopped(stop);
      },
      named("deep"));
  bus.on<Tail>([](const Tail&) { return 8; });
  bus.on<Loose>([](const Loose&) { return 6; });
  bus.on<Parent>([&](Event<Parent> parent) -> std::optional<int> {
    deep.wait();
    winners = parent.emit(Tail{});
    return winners->now().event_result<int>();
  });
  const auto parent = bus.emit(Parent{}, {.event_handler_completion = EventHandlerCompletion::first});
  CHECK(parent.now().event_result<int>({.raise_if_any = false}) == std::optional<int>(8));
  CHECK_THAT(std::string(error_of<EventHandlerAbortedError>(*grandchild, "deep").what()),
             test::contains("Aborted running handler due to parent error: "));
  CHECK_THAT(std::string(error_of<EventHandlerAbortedError>(*child, "loser's").what()),
             test::contains("Aborted running handler due to parent error: "));
  CHECK(grandchild->event_completed_at() <= child->event_completed_at());
  CHECK(loose->wait().event_result<int>() == std::optional<int>(6));
  CHECK(completed(*winners));
  CHECK(winners->event_errors().empty());
}

TEST_CASE("a chain of awaited coroutines is cancelled without recursion", "[T-NST-2][T-NST-3][S-FST-9]") {
  // Far deeper than a stack would hold if each level took a frame or two of it.
  constexpr int levels = sanitized ? 1'000 : 20'000;
  struct Level {
    int depth;
  };
  EventBus bus("NestedDeep", {.event_concurrency = EventConcurrency::parallel, .max_history_size = 0});
  EventOptions unlimited, race;
  unlimited.event_timeout = 0s;
  race.event_timeout = 0s;
  race.event_handler_concurrency = EventHandlerConcurrency::parallel;
  race.event_handler_completion = EventHandlerCompletion::first;
  std::atomic<int> reached{0};
  std::atomic<int> completions{0};
  Gate deepest;
  bus.on<Level>([&](Event<Level> event) -> task<void> {
    if (++reached == levels) {
      deepest.open();
      co_await bus.find_async<Tail>({.past = false, .future = true});  // for ever
    } else {
      const auto next = event.emit(Level{event->depth + 1}, unlimited);
      co_await next.now_async();
    }
    ++completions;
  });
  bus.on<Level>([&](const Level& level) -> std::optional<int> {
    if (level.depth == 0) deepest.wait();
    return 1;
  });
  const OpenAtEnd guard(deepest);
  const auto top = bus.emit(Level{0}, race);
  top.wait({.timeout = patience});
  CHECK(completed(top));
  CHECK(reached == levels);
  CHECK(error_name(top.event_results()[0].error()) == "EventHandlerAbortedError");
  REQUIRE(bus.wait_until_idle(patience));
  CHECK(completions == 0);
}

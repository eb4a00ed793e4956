// Handlers that fail or do not return: S-HND-7, S-HND-8, S-HND-10 (d).

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Notes = std::vector<std::string>;

struct FaultyEvent {};
struct AfterEvent {};

struct NoStandardError {
  int code;
};
struct OutOfStock : std::runtime_error {
  using std::runtime_error::runtime_error;
  int left = 3;
};

/// What `rethrow` of the error catches as `T`; nothing for another type.
template <class T>
std::optional<T> caught_as(const std::exception_ptr& error) {
  if (!error) return std::nullopt;
  try {
    std::rethrow_exception(error);
  } catch (const T& caught) {
    return caught;
  } catch (...) {
    return std::nullopt;
  }
}

TEST_CASE("an abandoned handler holds nothing up and its late outcome is ignored", "[S-HND-7]") {
  const CapturedLog log;
  bool late_throw = false;
  SECTION("it returns late") {}
  SECTION("it throws late") {
    late_throw = true;
  }

  Gate gate;
  Gate left;
  Recorder order;
  std::mutex mutex;
  std::optional<std::stop_token> token;
  EventBus bus("Abandons");
  const OpenAtExit open(gate);
  bus.on<FaultyEvent>(
      [&](const FaultyEvent&, std::stop_token stop) -> std::string {
        {
          const std::lock_guard lock(mutex);
          token = stop;
        }
        gate.wait();
        left.open();
        if (late_throw) throw std::runtime_error("late");
        return "late";
      },
      {.handler_timeout = 30ms});
  bus.on<FaultyEvent>([&](const FaultyEvent&) {
    order.add("next handler");
    return std::string("value");
  });
  bus.on<AfterEvent>([&](const AfterEvent&) { order.add("next event"); });

  const auto event = bus.emit(FaultyEvent{});
  const auto after = bus.emit(AfterEvent{});
  event.wait({.timeout = patience});
  after.wait({.timeout = patience});
  // The handler still stands at the gate.
  CHECK(order.notes() == Notes{"next handler", "next event"});
  CHECK(event.event_status() == EventStatus::completed);
  const EventResult result = event.event_results()[0];
  CHECK(result.status() == EventResultStatus::error);
  CHECK(error_name(result.error()) == "EventHandlerTimeoutError");
  {
    const std::lock_guard lock(mutex);
    REQUIRE(token);
    CHECK(token->stop_requested());
  }
  CHECK(bus.wait_until_idle(patience));

  const std::string message = result.error_message();
  const auto completed_at = result.completed_at();
  gate.open();
  REQUIRE(left.wait());
  bus.emit(AfterEvent{}).wait();
  CHECK(result.status() == EventResultStatus::error);
  CHECK(error_name(result.error()) == "EventHandlerTimeoutError");
  CHECK(result.error_message() == message);
  CHECK(result.completed_at() == completed_at);
  CHECK(result.result_as<std::string>() == std::nullopt);
  CHECK(event.event_results()[1].result_as<std::string>() == "value");
}

TEST_CASE("the run goes on at the timeout, not before", "[S-HND-7]") {
  const CapturedLog log;
  Gate gate;
  EventBus bus("AbandonsInTime");
  const OpenAtExit open(gate);
  bus.on<FaultyEvent>([&](const FaultyEvent&) { gate.wait(); }, {.handler_timeout = 80ms});
  const auto start = Clock::now();
  bus.emit(FaultyEvent{}).wait();
  const double elapsed = seconds_since(start);
  CHECK(elapsed >= 0.08);
  CHECK(elapsed < 2.0);
}

TEST_CASE("whatever a handler throws becomes its own error", "[S-HND-8]") {
  const CapturedLog log;
  std::atomic<int> others = 0;
  EventBus bus("ThrowsAnything");
  EventBus side("ThrowsAnythingSide");
  bus.on<FaultyEvent>([](const FaultyEvent&) { throw OutOfStock("none left"); });
  bus.on<FaultyEvent>([](const FaultyEvent&) { throw 42; });
  bus.on<FaultyEvent>([](const FaultyEvent&) { throw NoStandardError{7}; });
  bus.on<FaultyEvent>([](const FaultyEvent&) { throw std::string("text"); });
  bus.on<FaultyEvent>([&](Event<FaultyEvent>) -> task<int> {
    const auto child = side.emit(AfterEvent{});
    co_await child.wait_async();
    throw NoStandardError{8};
    co_return 1;
  });
  bus.on<FaultyEvent>([&](const FaultyEvent&) { ++others; });
  bus.on("*", [&](BaseEvent) { ++others; });

  const auto event = make_event(FaultyEvent{});
  CHECK_NOTHROW(bus.emit(event));
  CHECK_NOTHROW(event.wait());
  CHECK_NOTHROW(event.now());
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(others == 2);
  const EventResults results = event.event_results();
  REQUIRE(results.size() == 7);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(results[i].status() == EventResultStatus::error);
    CHECK(results[i].started_at());
    CHECK(results[i].completed_at());
  }
  CHECK(results[5].status() == EventResultStatus::completed);
  CHECK(results[6].status() == EventResultStatus::completed);
  REQUIRE(caught_as<OutOfStock>(results[0].error()));
  CHECK(caught_as<OutOfStock>(results[0].error())->left == 3);
  CHECK(caught_as<int>(results[1].error()) == 42);
  REQUIRE(caught_as<NoStandardError>(results[2].error()));
  CHECK(caught_as<NoStandardError>(results[2].error())->code == 7);
  CHECK(caught_as<std::string>(results[3].error()) == "text");
  REQUIRE(caught_as<NoStandardError>(results[4].error()));
  CHECK(caught_as<NoStandardError>(results[4].error())->code == 8);

  // The workers have survived.
  for (int i = 0; i < 90; ++i) bus.emit(AfterEvent{});
  CHECK(bus.wait_until_idle());
  CHECK(others == 92);
}

TEST_CASE("an error in one parallel handler leaves the others alone", "[S-HND-8]") {
  const CapturedLog log;
  Gate gate;
  EventBus bus("ThrowsInParallel", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  const OpenAtExit open(gate);
  bus.on<FaultyEvent>([](const FaultyEvent&) { throw std::logic_error("at once"); });
  bus.on<FaultyEvent>([&](const FaultyEvent&, std::stop_token stop) {
    gate.wait();
    return !stop.stop_requested();
  });
  const auto event = bus.emit(FaultyEvent{});
  CHECK(eventually([&] {
    const EventResults results = event.event_results();
    return !results.empty() && results[0].status() == EventResultStatus::error;
  }));
  CHECK(event.event_status() == EventStatus::started);
  gate.open();
  event.wait();
  CHECK(event.event_results()[1].result_as<bool>() == true);
}

TEST_CASE("one handler throws, the next works", "[S-HND-10]") {
  const CapturedLog log;
  EventBus bus("ThrowsThenWorks");
  bus.on<FaultyEvent>([](const FaultyEvent&) { throw std::runtime_error("broken"); });
  bus.on<FaultyEvent>([](const FaultyEvent&) { return "worked"; });
  const auto event = bus.emit(FaultyEvent{});
  event.wait();
  CHECK(event.event_status() == EventStatus::completed);
  CHECK(event.event_results()[0].status() == EventResultStatus::error);
  CHECK(event.event_results()[0].error_message() == "broken");
  CHECK(event.event_results()[1].status() == EventResultStatus::completed);
  CHECK(event.event_results()[1].result_as<std::string>() == "worked");
}

}  // namespace

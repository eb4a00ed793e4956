// The error classes: hierarchy, names, what they carry, and which one the bus records for what.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
using Texts = std::vector<std::string>;
constexpr auto parallel_handlers = EventHandlerConcurrency::parallel;
constexpr auto first = EventHandlerCompletion::first;

/// A conversion of pointers is refused when the base is ambiguous or not public.
template <class Derived, class... Bases>
constexpr bool is_a = (std::is_convertible_v<const Derived*, const Bases*> && ...);
template <class... Errors>
constexpr bool are_errors = (is_a<Errors, Error, std::runtime_error, std::exception> && ...);
template <class... Errors>
constexpr bool are_handler_errors = (is_a<Errors, EventHandlerError, Error, std::exception> && ...);
template <class... Errors>
constexpr bool copy_safely = (std::is_nothrow_copy_constructible_v<Errors> && ...);

}  // namespace

TEST_CASE("every error converts to its bases without ambiguity", "[T-ERR-10]") {
  STATIC_REQUIRE(is_a<ValidationError, std::invalid_argument, std::exception>);
  STATIC_REQUIRE_FALSE(is_a<ValidationError, Error>);
  STATIC_REQUIRE(
      are_errors<Error, TimeoutError, CancelledError, OperationCancelled, EventHandlerError, EventHandlerTimeoutError,
                 EventHandlerCancelledError, EventHandlerAbortedError, EventHandlerResultSchemaError,
                 EventHandlerPayloadSchemaError, EventHandlerRecursionError, EventHandlerErrors, EventResultNoneError,
                 EventBusDestroyedError, EventBusHistoryLimitError>);
  STATIC_REQUIRE(
      are_handler_errors<EventHandlerTimeoutError, EventHandlerCancelledError, EventHandlerAbortedError,
                         EventHandlerResultSchemaError, EventHandlerPayloadSchemaError, EventHandlerRecursionError>);
  STATIC_REQUIRE(is_a<EventHandlerTimeoutError, TimeoutError>);
  STATIC_REQUIRE(is_a<EventHandlerCancelledError, CancelledError>);
  STATIC_REQUIRE(is_a<EventHandlerAbortedError, CancelledError>);
  STATIC_REQUIRE(is_a<OperationCancelled, CancelledError>);
  STATIC_REQUIRE_FALSE(is_a<EventHandlerCancelledError, TimeoutError>);
  STATIC_REQUIRE_FALSE(is_a<EventHandlerErrors, EventHandlerError>);
  STATIC_REQUIRE_FALSE(is_a<EventHandlerResultSchemaError, ValidationError>);
  STATIC_REQUIRE(copy_safely<ValidationError, Error, TimeoutError, CancelledError, EventHandlerError,
                             EventHandlerTimeoutError, EventHandlerErrors, EventBusDestroyedError>);
}

TEST_CASE("an error tells its own name, also through its bases", "[T-ERR-10]") {
  const EventHandlerTimeoutError timeout("late");
  const TimeoutError& as_timeout = timeout;
  const EventHandlerError& as_handler_error = timeout;
  const Error& as_error = timeout;
  const std::exception& as_exception = timeout;
  CHECK(as_timeout.type_name() == "EventHandlerTimeoutError");
  CHECK(as_handler_error.type_name() == "EventHandlerTimeoutError");
  CHECK(as_error.type_name() == "EventHandlerTimeoutError");
  CHECK(std::string(as_exception.what()) == "late");
  CHECK(Error("e").type_name() == "Error");
  CHECK(ValidationError("v").type_name() == "ValidationError");
  CHECK(ValidationError("v", "some.field").field() == "some.field");
  CHECK(TimeoutError("t").type_name() == "TimeoutError");
  CHECK(CancelledError("c").type_name() == "CancelledError");
  CHECK(OperationCancelled("o").type_name() == "OperationCancelled");
  CHECK(EventHandlerError("h").type_name() == "EventHandlerError");
  CHECK(EventHandlerCancelledError("c").type_name() == "EventHandlerCancelledError");
  CHECK(EventHandlerAbortedError("a").type_name() == "EventHandlerAbortedError");
  CHECK(EventHandlerResultSchemaError("s").type_name() == "EventHandlerResultSchemaError");
  CHECK(EventHandlerPayloadSchemaError("p").type_name() == "EventHandlerPayloadSchemaError");
  CHECK(EventHandlerRecursionError("r", {}, 3).depth() == 3);
}

TEST_CASE("handler errors carry copies that outlive bus and event", "[T-ERR-11]") {
  std::exception_ptr timeout, aborted, cancelled;
  Uuid event_id, timeout_result_id;
  std::string timeout_handler, cancelled_handler;
  {
    Gate gate;
    EventBus bus("ErrCopies", {.max_history_size = 0});
    const OpenAtEnd open(gate);
    bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "late", .handler_timeout = 20ms});
    bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "running"});
    bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "waiting"});
    const auto event = bus.emit(Job{}, {.event_timeout = 0.2s}).wait();
    REQUIRE(outcomes(event) ==
            Texts{"EventHandlerTimeoutError", "EventHandlerAbortedError", "EventHandlerCancelledError"});
    event_id = event.event_id();
    timeout = result_of(event, "late").error();
    timeout_handler = result_of(event, "late").handler_id();
    timeout_result_id = result_of(event, "late").id();
    aborted = result_of(event, "running").error();
    cancelled = result_of(event, "waiting").error();
    cancelled_handler = result_of(event, "waiting").handler_id();
  }
  const auto* late = error_as<EventHandlerError>(timeout);
  REQUIRE(late != nullptr);
  CHECK(late->event_id() == event_id);
  CHECK(late->event_result_id() == timeout_result_id);
  CHECK(late->event_type() == "Job");
  CHECK(late->handler_id() == timeout_handler);
  CHECK(late->handler_name() == "late");
  CHECK(number(late->event_timeout()) == 0.2);
  CHECK(number(late->timeout_seconds()) == 0.02);
  const auto* never = error_as<EventHandlerError>(cancelled);
  REQUIRE(never != nullptr);
  CHECK(never->handler_id() == cancelled_handler);
  CHECK(never->handler_name() == "waiting");
  CHECK(number(never->event_timeout()) == 0.2);
  CHECK(error_as<EventHandlerError>(aborted)->handler_name() == "running");
}

TEST_CASE("event_timeout() of an error is the event's own field, not what was in force", "[T-ERR-11]") {
  Gate gate;
  EventBus bus("ErrOwnField", {.event_timeout = 30ms});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto event = bus.emit(Job{}).wait();
  const auto error = event.event_results()[0].error();
  REQUIRE(error_as<EventHandlerAbortedError>(error) != nullptr);
  CHECK_FALSE(error_as<EventHandlerAbortedError>(error)->event_timeout().has_value());
}

TEST_CASE("the cause of a handler timeout is a TimeoutError with the same text", "[T-ERR-12]") {
  Gate gate;
  EventBus bus("ErrTimeoutCause");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) throw TimeoutError("too slow elsewhere", 1.5s);
    gate.wait();
  });
  const auto deadline = bus.emit(Job{}, {.event_handler_timeout = 20ms}).wait().event_results()[0].error();
  const auto* error = error_as<EventHandlerTimeoutError>(deadline);
  REQUIRE(error != nullptr);
  CHECK(number(error->timeout_seconds()) == 0.02);
  CHECK(error_type_name(error->cause()) == "TimeoutError");
  CHECK(error_message(error->cause()) == error->what());

  const auto thrown = bus.emit(Job{1}).wait().event_results()[0].error();
  const auto* normalized = error_as<EventHandlerTimeoutError>(thrown);
  REQUIRE(normalized != nullptr);
  CHECK(number(normalized->timeout_seconds()) == 1.5);
  CHECK(number(error_as<TimeoutError>(thrown)->timeout_seconds()) == 1.5);
  CHECK(error_type_name(normalized->cause()) == "TimeoutError");
  CHECK(error_message(normalized->cause()) == "too slow elsewhere");
}

TEST_CASE("the cause of an event timeout names the anchor and is one object for all", "[T-ERR-13]") {
  Gate gate;
  EventBus bus("ErrEventCause");
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) {}, {.handler_name = "done"});
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "anchor"});
  bus.on<Job>([](const Job&) {}, {.handler_name = "pending"});
  const auto event = bus.emit(Job{}, {.event_timeout = 0.1s}).wait();
  REQUIRE(outcomes(event) == Texts{"completed", "EventHandlerAbortedError", "EventHandlerCancelledError"});
  const auto anchor = result_of(event, "anchor");
  const auto aborted = anchor.error(), cancelled = result_of(event, "pending").error();
  const auto cause = error_as<EventHandlerError>(aborted)->cause();
  CHECK(error_type_name(cause) == "EventHandlerTimeoutError");
  CHECK(error_message(cause) == run_text(bus, event, anchor) + " timed out after 0.1s");
  CHECK(error_as<EventHandlerError>(cancelled)->cause() == cause);
  CHECK(number(error_as<EventHandlerError>(aborted)->timeout_seconds()) == 0.1);
  CHECK(number(error_as<EventHandlerError>(cancelled)->timeout_seconds()) == 0.1);
}

TEST_CASE("the cause of a lost first and of a destroy is a plain Error", "[T-ERR-13]") {
  Gate gate, destroyed_gate;
  EventBus bus("ErrFirstCause");
  EventBus ended("ErrDestroyCause");
  const OpenAtEnd open(gate, destroyed_gate);
  bus.on<Job>([](const Job&) { return 1; });
  bus.on<Job>([](const Job&) { return 2; });
  const auto raced = bus.emit(Job{}, {.event_timeout = 9s, .event_handler_completion = first}).now();
  const auto lost = raced.event_results()[1].error();
  REQUIRE(error_as<EventHandlerCancelledError>(lost) != nullptr);
  const auto* loser = error_as<EventHandlerError>(lost);
  CHECK(error_type_name(loser->cause()) == "Error");
  CHECK(error_message(loser->cause()) == "first result resolved");
  CHECK(number(loser->timeout_seconds()) == 9.0);

  ended.on<Job>([&](const Job&) { destroyed_gate.wait(); });
  const auto event = ended.emit(Job{});
  REQUIRE(destroyed_gate.wait_for_arrivals(1));
  ended.destroy();
  const auto cut = event.event_results()[0].error();
  REQUIRE(error_as<EventHandlerAbortedError>(cut) != nullptr);
  const auto* aborted = error_as<EventHandlerError>(cut);
  CHECK(error_type_name(aborted->cause()) == "Error");
  CHECK(error_message(aborted->cause()) == "event bus destroyed");
  CHECK_FALSE(aborted->timeout_seconds().has_value());
}

TEST_CASE("EventHandlerErrors lists its errors in registration order", "[T-ERR-15]") {
  Gate later;
  EventBus bus("ErrOrder", {.event_handler_concurrency = parallel_handlers});
  const OpenAtEnd open(later);
  bus.on<Job>([&](const Job&) {
    later.wait();
    throw std::runtime_error("a");
  });
  bus.on<Job>([](const Job&) { return 1; });
  bus.on<Job>([](const Job&) { throw Error("b"); });
  const auto event = bus.emit(Job{});
  REQUIRE(eventually([&] { return event.event_errors().size() == 1; }));
  later.open();
  event.wait();
  const auto error = thrown_by([&] { event.event_result<int>(); });
  const auto* several = error_as<EventHandlerErrors>(error);
  REQUIRE(several != nullptr);
  CHECK(several->event_type() == "Job");
  CHECK(several->event_id() == event.event_id());
  REQUIRE(several->errors().size() == 2);
  CHECK(error_message(several->errors()[0]) == "a");
  CHECK(error_message(several->errors()[1]) == "b");
  CHECK(std::string(several->what()) == "Event " + event_label(event) + " had 2 handler error(s): a; b");
}

TEST_CASE("errors are recorded under their class and catchable under their category", "[T-ERR-16]") {
  Gate gate, winner;
  EventBus bus("ErrTaxonomy"), racing("ErrTaxonomyParallel");
  const OpenAtEnd open(gate, winner);
  bus.on<Job>([&](const Job& job) -> std::optional<int> {
    if (job.n == 1) gate.wait();
    return job.n;
  });
  bus.on<Job>([&](const Job& job) -> std::optional<int> {
    if (job.n == 2) gate.wait();
    return std::nullopt;
  });
  const auto late = bus.emit(Job{1}, {.event_handler_timeout = 20ms}).wait().event_results()[0].error();
  CHECK(error_type_name(late) == "EventHandlerTimeoutError");
  CHECK(error_as<TimeoutError>(late) != nullptr);
  CHECK(error_as<CancelledError>(late) == nullptr);

  const auto serial = bus.emit(Job{3}, {.event_handler_completion = first}).wait().event_results()[1].error();
  CHECK(error_type_name(serial) == "EventHandlerCancelledError");
  CHECK(error_as<CancelledError>(serial) != nullptr);

  racing.on<Job>([&](const Job&) { gate.wait(); });
  racing.on<Job>([&](const Job&) {
    winner.wait();
    return 1;
  });
  const auto race =
      racing.emit(Job{}, {.event_handler_concurrency = parallel_handlers, .event_handler_completion = first});
  CHECK(gate.wait_for_arrivals(2));
  winner.open();
  race.wait();
  const auto loser = race.event_results()[0].error();
  CHECK(error_type_name(loser) == "EventHandlerAbortedError");
  CHECK(error_as<CancelledError>(loser) != nullptr);
}

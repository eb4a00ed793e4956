#include "support/catch.hpp"

#include <abxbus/error.hpp>

#include <boost/json/value.hpp>

#include <exception>
#include <ios>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using namespace abxbus;
using namespace std::chrono_literals;

namespace shop {

struct OutOfStock : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class T>
struct Failure : std::logic_error {
  using std::logic_error::logic_error;
  struct Inner : std::logic_error {
    using std::logic_error::logic_error;
  };
};
/// Derived from a category of the library, as a user may do.
struct Sluggish : TimeoutError {
  Sluggish() : Error("sluggish"), TimeoutError("sluggish", 2s) {}
};
struct Renamed : Error {
  Renamed() : Error("renamed") {}
  std::string_view type_name() const noexcept override { return "SomethingElse"; }
};

}  // namespace shop

namespace {

struct Hidden : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class E>
std::exception_ptr pointer(E error) {
  return std::make_exception_ptr(std::move(error));
}

/// Whether a handler for `Caught` catches it. An ambiguous base would not be caught.
template <class Caught>
bool caught_as(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Caught&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// The name as the object, its bases and the free function tell it.
template <class E>
void check_class(const E& error, const std::string& name) {
  INFO(name);
  const auto thrown = std::make_exception_ptr(error);
  CHECK(error.type_name() == name);
  CHECK(error_type_name(thrown) == name);
  CHECK(error_message(thrown) == error.what());
  CHECK(caught_as<E>(thrown));
  CHECK(caught_as<std::exception>(thrown));
  CHECK(static_cast<const std::exception&>(error).what() == std::string(error.what()));
  CHECK(std::is_nothrow_copy_constructible_v<E>);
  if constexpr (std::is_base_of_v<Error, E>) {
    CHECK(caught_as<Error>(thrown));
    CHECK(caught_as<std::runtime_error>(thrown));
    CHECK_FALSE(caught_as<ValidationError>(thrown));
    CHECK(static_cast<const Error&>(error).type_name() == name);
  }
  if constexpr (std::is_base_of_v<EventHandlerError, E>) CHECK(caught_as<EventHandlerError>(thrown));
  if constexpr (std::is_base_of_v<CancelledError, E>) CHECK(caught_as<CancelledError>(thrown));
  if constexpr (std::is_base_of_v<TimeoutError, E>) CHECK(caught_as<TimeoutError>(thrown));
}

EventHandlerErrorInfo some_info() {
  return {.event_result_id = Uuid::parse("0196a1b2-d001-7002-8002-000000000002"),
          .event_id = Uuid::parse("0196a1b2-d000-7001-8001-000000000001"),
          .event_type = "OrderEvent",
          .handler_id = "handler-one",
          .handler_name = "on_order",
          .event_timeout = 30s,
          .timeout_seconds = 50ms,
          .cause = pointer(TimeoutError("slow", 50ms))};
}

}  // namespace

TEST_CASE("every class tells its name and is caught by each of its bases", "[T-ERR-10][D-EXC-1][D-EXC-2][D-EXC-4]") {
  check_class(ValidationError("x"), "ValidationError");
  check_class(Error("x"), "Error");
  check_class(TimeoutError("x"), "TimeoutError");
  check_class(CancelledError("x"), "CancelledError");
  check_class(OperationCancelled("x"), "OperationCancelled");
  check_class(EventHandlerError("x"), "EventHandlerError");
  check_class(EventHandlerTimeoutError("x"), "EventHandlerTimeoutError");
  check_class(EventHandlerCancelledError("x"), "EventHandlerCancelledError");
  check_class(EventHandlerAbortedError("x"), "EventHandlerAbortedError");
  check_class(EventHandlerResultSchemaError("x"), "EventHandlerResultSchemaError");
  check_class(EventHandlerPayloadSchemaError("x"), "EventHandlerPayloadSchemaError");
  check_class(EventHandlerRecursionError("x"), "EventHandlerRecursionError");
  check_class(EventHandlerErrors("OrderEvent", Uuid{}, {}, "OrderEvent#0000"), "EventHandlerErrors");
  check_class(EventResultNoneError("OrderEvent", Uuid{}, "OrderEvent#0000"), "EventResultNoneError");
  check_class(EventBusDestroyedError("A", "id", "A#1234", "emit"), "EventBusDestroyedError");
  check_class(EventBusHistoryLimitError("A#1234", "OrderEvent", 2, 2), "EventBusHistoryLimitError");
}

TEST_CASE("a validation error stands apart and names its field", "[T-ERR-10][D-EXC-1]") {
  const ValidationError error("event_timeout must be >= 0 or null", "event_timeout");
  CHECK(error.what() == std::string("event_timeout must be >= 0 or null"));
  CHECK(error.field() == "event_timeout");
  CHECK(ValidationError("x").field().empty());
  CHECK(caught_as<std::invalid_argument>(pointer(error)));
  CHECK_FALSE(caught_as<Error>(pointer(error)));
}

TEST_CASE("what a handler error carries outlives everything else", "[T-ERR-11]") {
  auto info = std::make_unique<EventHandlerErrorInfo>(some_info());
  auto original = std::make_unique<EventHandlerAbortedError>("aborted", *info);
  const EventHandlerAbortedError copy = *original;
  original.reset();
  info.reset();
  CHECK(copy.what() == std::string("aborted"));
  CHECK(copy.event_result_id() == "0196a1b2-d001-7002-8002-000000000002");
  CHECK(copy.event_id() == "0196a1b2-d000-7001-8001-000000000001");
  CHECK(copy.event_type() == "OrderEvent");
  CHECK(copy.handler_id() == "handler-one");
  CHECK(copy.handler_name() == "on_order");
  CHECK(copy.event_timeout() == 30s);
  CHECK(copy.timeout_seconds() == 50ms);
  CHECK(error_message(copy.cause()) == "slow");
}

TEST_CASE("fields that are not known are unset", "[T-ERR-11]") {
  const EventHandlerError error("x");
  CHECK(error.event_id().is_nil());
  CHECK(error.event_result_id().is_nil());
  CHECK(error.handler_id().empty());
  CHECK_FALSE(error.event_timeout().has_value());
  CHECK_FALSE(error.timeout_seconds().has_value());
  CHECK(error.cause() == nullptr);
}

TEST_CASE("both bases of a handler timeout tell the same seconds", "[T-ERR-12][T-ERR-16]") {
  const EventHandlerTimeoutError error("A#1234.on(OrderEvent#0001, on_order()) timed out after 0.05s", some_info());
  CHECK(error.timeout_seconds() == 50ms);
  CHECK(static_cast<const TimeoutError&>(error).timeout_seconds() == 50ms);
  CHECK(static_cast<const EventHandlerError&>(error).timeout_seconds() == 50ms);
  CHECK(caught_as<TimeoutError>(error.cause()));
  CHECK_FALSE(caught_as<CancelledError>(pointer(error)));
}

TEST_CASE("a plain error serves as the cause of a cancellation", "[T-ERR-13]") {
  const EventHandlerCancelledError error("Cancelled: first result resolved",
                                         {.cause = pointer(Error("first result resolved"))});
  CHECK(error_type_name(error.cause()) == "Error");
  CHECK(error_message(error.cause()) == "first result resolved");
  CHECK_FALSE(error.timeout_seconds().has_value());
}

TEST_CASE("a result schema error carries value, schema and cause", "[T-ERR-14]") {
  const auto raw = std::make_shared<const boost::json::value>("12");
  const auto schema = std::make_shared<const boost::json::value>(boost::json::value{{"type", "integer"}});
  const EventHandlerResultSchemaError error("did not match",
                                            {.cause = pointer(ValidationError("$ must be integer", "$"))}, raw, schema);
  CHECK(error.raw_value() == "12");
  CHECK(error.expected_schema().at("type") == "integer");
  CHECK(caught_as<ValidationError>(error.cause()));
  CHECK_FALSE(caught_as<std::invalid_argument>(pointer(error)));
  CHECK(EventHandlerResultSchemaError("x").raw_value().is_null());
  CHECK(EventHandlerResultSchemaError("x").expected_schema().is_null());
}

TEST_CASE("the error of several errors keeps and lists them in order", "[T-ERR-15]") {
  const std::vector<std::exception_ptr> errors = {pointer(std::runtime_error("first")), pointer(5),
                                                  pointer(shop::OutOfStock("third"))};
  const EventHandlerErrors error("OrderEvent", Uuid::parse("0196a1b2-d000-7001-8001-00000000beef"), errors,
                                 "OrderEvent#beef");
  CHECK(error.what() == std::string("Event OrderEvent#beef had 3 handler error(s): first; unknown exception; third"));
  CHECK(error.errors() == errors);
  CHECK(error.event_type() == "OrderEvent");
  CHECK(error.event_id() == "0196a1b2-d000-7001-8001-00000000beef");
}

TEST_CASE("the texts that errors make themselves", "[T-ERR-10]") {
  const EventResultNoneError none("OrderEvent", Uuid::parse("0196a1b2-d000-7001-8001-00000000beef"), "OrderEvent#beef");
  CHECK(none.what() ==
        std::string("Expected at least one handler to return a non-null result, but none did: OrderEvent#beef"));
  CHECK(none.event_type() == "OrderEvent");
  CHECK(none.event_id() == "0196a1b2-d000-7001-8001-00000000beef");

  const EventBusDestroyedError destroyed("Shop", "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "Shop#4a5b", "emit");
  CHECK(destroyed.what() == std::string("Shop#4a5b has been destroyed and cannot be used again"));
  CHECK(destroyed.eventbus_name() == "Shop");
  CHECK(destroyed.eventbus_id() == "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b");
  CHECK(destroyed.eventbus_label() == "Shop#4a5b");
  CHECK(destroyed.operation() == "emit");

  const EventBusHistoryLimitError full("Shop#4a5b", "OrderEvent", 3, 2);
  CHECK(full.what() == std::string("Shop#4a5b.emit(OrderEvent) rejected: history limit reached (3/2); set "
                                   "event_history.max_history_drop=true to drop old history instead."));
  CHECK(full.eventbus_label() == "Shop#4a5b");
  CHECK(full.event_type() == "OrderEvent");
  CHECK(full.size() == 3);
  CHECK(full.limit() == 2);
}

TEST_CASE("cancelled and aborted handlers are cancellations, and nothing else is", "[T-ERR-16]") {
  CHECK(caught_as<CancelledError>(pointer(EventHandlerCancelledError("x"))));
  CHECK(caught_as<CancelledError>(pointer(EventHandlerAbortedError("x"))));
  CHECK(caught_as<CancelledError>(pointer(OperationCancelled("x"))));
  CHECK_FALSE(caught_as<CancelledError>(pointer(EventHandlerResultSchemaError("x"))));
  CHECK_FALSE(caught_as<TimeoutError>(pointer(EventHandlerAbortedError("x"))));
  CHECK_FALSE(caught_as<EventHandlerError>(pointer(OperationCancelled("x"))));
  CHECK_FALSE(caught_as<EventHandlerError>(pointer(TimeoutError("x"))));
  CHECK(EventHandlerRecursionError("x", {}, 3).depth() == 3);
}

TEST_CASE("names of other exceptions are their class without qualification", "[D-ERR-2][T-ERR-21]") {
  struct Local : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  CHECK(error_type_name(pointer(std::runtime_error("x"))) == "runtime_error");
  CHECK(error_type_name(pointer(std::bad_alloc())) == "bad_alloc");
  CHECK(error_type_name(pointer(std::ios_base::failure("x"))) == "failure");
  CHECK(error_type_name(pointer(shop::OutOfStock("x"))) == "OutOfStock");
  CHECK(error_type_name(pointer(shop::Failure<std::vector<int>>("x"))) == "Failure");
  CHECK(error_type_name(pointer(shop::Failure<shop::OutOfStock>::Inner("x"))) == "Inner");
  CHECK(error_type_name(pointer(Hidden("x"))) == "Hidden");
  CHECK(error_type_name(pointer(Local("x"))) == "Local");
}

TEST_CASE("classes that users derive from ours", "[D-ERR-2][T-ERR-10]") {
  CHECK(error_type_name(pointer(shop::Sluggish())) == "Sluggish");
  CHECK(caught_as<TimeoutError>(pointer(shop::Sluggish())));
  CHECK(error_type_name(pointer(shop::Renamed())) == "SomethingElse");
}

TEST_CASE("what is no exception object has a type and a message too", "[D-ERR-2][T-ERR-21]") {
  CHECK(error_type_name(pointer(5)) == "Exception");
  CHECK(error_message(pointer(5)) == "unknown exception");
  CHECK(error_type_name(pointer(std::string("text"))) == "Exception");
  CHECK(error_message(pointer(std::string("text"))) == "text");
  const char* literal = "literal";
  CHECK(error_type_name(pointer(literal)) == "Exception");
  CHECK(error_message(pointer(literal)) == "literal");
  CHECK(error_message(pointer(static_cast<const char*>(nullptr))) == "unknown exception");
  CHECK(error_message(pointer(std::runtime_error("what"))) == "what");
  CHECK(error_type_name(nullptr).empty());
  CHECK(error_message(nullptr).empty());
}

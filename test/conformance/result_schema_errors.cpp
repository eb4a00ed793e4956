// Values that do not fit the declared result type, seen from the error classes.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <abxbus/json.hpp>

#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Count {
  using event_result_type = int;
};
struct Plain {};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("raw_value is the result of whatever was not rejected", "[T-ERR-14]") {
  EventBus bus("SchemaRaw");
  bus.on<Plain>([](const Plain&) { return 7; });
  bus.on<Plain>([](const Plain&) {});
  bus.on<Plain>([](const Plain&) { throw Error("no value"); });
  const auto results = bus.emit(Plain{}).now().event_results();
  CHECK(results[0].raw_value() == json::value(7));
  CHECK(results[0].raw_value() == results[0].result());
  CHECK(results[1].raw_value().is_null());
  CHECK(results[2].raw_value().is_null());
}

TEST_CASE("JSON null is no value, other JSON values are", "[T-HND-8]") {
  EventBus bus("SchemaNull");
  bus.on<Plain>([](const Plain&) { return json::value(nullptr); });
  bus.on<Plain>([](const Plain&) { return json::value(json::object{}); });
  bus.on<Plain>([](const Plain&) { return json::value(json::array{}); });
  bus.on<Plain>([](const Plain&) { return json::value(false); });
  const auto event = bus.emit(Plain{}).now();
  CHECK(outcomes(event) == Texts(4, "completed"));
  CHECK(event.event_results()[0].result().is_null());
  CHECK_FALSE(event.event_results()[0].usable());
  CHECK(event.event_results()[1].usable());
  CHECK(event.event_results()[2].usable());
  CHECK(event.event_results_list().size() == 3);
}

TEST_CASE("a rejected value ends in EventHandlerResultSchemaError", "[T-ERR-14][T-ERR-16]") {
  EventBus bus("SchemaRejected");
  bus.on("Count", [](BaseEvent) { return std::string("twelve"); }, {.handler_name = "wrong"});
  bus.on<Count>([](const Count&) { return 12; }, {.handler_name = "right"});
  const auto event = bus.emit(Count{}).now();
  CHECK(outcomes(event) == Texts{"EventHandlerResultSchemaError", "completed"});
  const auto result = result_of(event, "wrong");
  CHECK_THAT(result.error_message(), test::contains("did not match event_result_type"));
  CHECK(result.result().is_null());
  CHECK(result.raw_value() == json::value("twelve"));
  const auto error = result.error();
  const auto* schema = error_as<EventHandlerResultSchemaError>(error);
  REQUIRE(schema != nullptr);
  CHECK(schema->raw_value() == json::value("twelve"));
  CHECK(schema->expected_schema().is_object());
  CHECK(schema->expected_schema().at("type") == "integer");
  CHECK(error_type_name(schema->cause()) == "ValidationError");
  CHECK(schema->handler_name() == "wrong");
}

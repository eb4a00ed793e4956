// JSON values of results.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <abxbus/json.hpp>

#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

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

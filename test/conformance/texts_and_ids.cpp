// What the parts of messages are, what consumers may rely on in them, and which ids are taken as they are given.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <abxbus/handler_id.hpp>

#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;
using abxbus::test::contains;

namespace {

struct Child {};
struct Order {
  int n = 0;
};

std::string id4(const std::string& id) {
  return id.substr(id.size() - 4);
}
std::string short_label(const BaseEvent& event) {
  return event.event_type() + "#" + id4(event.event_id().str());
}

}  // namespace

TEST_CASE("messages name bus, event and handler by name and the last four characters of the id", "[T-CNV-3]") {
  Gate gate;
  EventBus bus("Wording", {.event_handler_detect_file_paths = false});
  const OpenAtEnd open(gate);
  CHECK(bus.label() == "Wording#" + id4(bus.id()));
  const auto slow =
      bus.on<Order>([&](const Order&) { gate.wait(); }, {.handler_name = "slow", .handler_timeout = 30ms});
  const auto unnamed =
      bus.on<Order>([&](const Order&) { gate.wait(); }, {.id = "unnamed-0042", .handler_timeout = 30ms});
  CHECK(slow.label() == "slow#" + id4(slow.id()));
  const auto event = bus.emit(Order{}).wait();
  const auto results = event.event_results();
  REQUIRE(results.size() == 2);
  CHECK(results[0].error_message() == bus.label() + ".on(" + short_label(event) + ", slow()) timed out after 0.03s");
  CHECK(results[1].error_message() ==
        bus.label() + ".on(" + short_label(event) + ", function#0042()) timed out after 0.03s");
}

TEST_CASE("the display text of a handler shows its path when one is known", "[T-CNV-3]") {
  Gate gate;
  EventBus bus("WordingPath");
  const OpenAtEnd open(gate);
  bus.on<Order>([&](const Order&) { gate.wait(); },
                {.handler_name = "slow", .handler_file_path = "~/shop/orders.cpp:8", .handler_timeout = 30ms});
  const auto event = bus.emit(Order{}).wait();
  CHECK(event.event_results()[0].error_message() ==
        bus.label() + ".on(" + short_label(event) + ", slow() @ ~/shop/orders.cpp:8) timed out after 0.03s");
}

TEST_CASE("the substrings that consumers may rely on, with their classes", "[T-ERR-1]") {
  SECTION("timed out; event timeout") {
    Gate gate;
    EventBus bus("RelyTimeout", {.event_timeout = 40ms});
    const OpenAtEnd open(gate);
    bus.on<Order>([&](const Order&) { gate.wait(); }, {.handler_timeout = 10ms});
    bus.on<Order>([&](const Order&) { gate.wait(); });
    bus.on<Order>([](const Order&) {});
    const auto results = bus.emit(Order{}).wait().event_results();
    CHECK(outcome(results[0]) == "EventHandlerTimeoutError");
    CHECK_THAT(results[0].error_message(), contains("timed out"));
    CHECK(outcome(results[1]) == "EventHandlerAbortedError");
    CHECK_THAT(results[1].error_message(), contains("event timeout"));
    CHECK(outcome(results[2]) == "EventHandlerCancelledError");
    CHECK_THAT(results[2].error_message(), contains("event timeout"));
  }
  SECTION("first result resolved") {
    EventBus bus("RelyFirst", {.event_handler_completion = EventHandlerCompletion::first});
    bus.on<Order>([](const Order& order) { return order.n; });
    bus.on<Order>([](const Order& order) { return order.n; });
    const auto results = bus.emit(Order{7}).wait().event_results();
    CHECK(outcome(results[1]) == "EventHandlerCancelledError");
    CHECK_THAT(results[1].error_message(), contains("first result resolved"));
  }
  SECTION("had n handler error; Expected at least one handler") {
    EventBus bus("RelyAccessors");
    const auto fails = [](const Order&) { throw std::runtime_error("broken"); };
    bus.on<Order>(fails);
    const auto one = bus.on<Order>([](const Order&) { throw std::runtime_error("broken too"); });
    const auto event = bus.emit(Order{}).wait();
    REQUIRE_THROWS_AS(event.event_results_list<int>(), EventHandlerErrors);
    REQUIRE_THROWS_WITH(event.event_results_list<int>(), contains("had 2 handler error"));
    bus.off<Order>();
    bus.on<Order>([](const Order&) {});
    const auto empty = bus.emit(Order{}).wait();
    REQUIRE_THROWS_AS(empty.event_result<int>({.raise_if_none = true}), EventResultNoneError);
    REQUIRE_THROWS_WITH(empty.event_result<int>({.raise_if_none = true}), contains("Expected at least one handler"));
  }
}

TEST_CASE("ids of handlers are opaque: any non-empty text survives", "[D-ID-4]") {
  EventBus bus("OpaqueIds");
  const std::vector<std::string> ids = {"handler-one", "Handler ONE / größer", "1", std::string(300, 'x')};
  for (const std::string& id : ids) bus.on<Order>([](const Order&) { return 1; }, {.id = id});
  const auto event = bus.emit(Order{}).wait();
  const auto results = event.event_results();
  REQUIRE(results.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(results[i].handler_id() == ids[i]);
  }
  // The emitting handler is named by such an id as well.
  EventBus parent_bus("OpaqueEmitter");
  BaseEvent child;
  parent_bus.on<Order>([&](const Event<Order>& order) { child = order.emit(Child{}); }, {.id = "handler-one"});
  parent_bus.emit(Order{}).wait();
  parent_bus.wait_until_idle();
  CHECK(child.event_emitted_by_handler_id() == "handler-one");
}

TEST_CASE("an id is computed from the overridden name, path and time; a given one is not recomputed", "[D-ID-7]") {
  const std::string bus_id = "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
  const std::string at = "2026-03-04T05:06:07.000000001Z";
  EventBus bus("OverriddenIds", {.id = bus_id});
  const HandlerOptions overridden = {.handler_name = "on_order_created",
                                     .handler_file_path = "~/shop/src/orders.cpp:88",
                                     .handler_registered_at = Timestamp::parse(at)};
  const auto computed = bus.on<Order>([](const Order&) {}, overridden);
  CHECK(computed.id() == compute_handler_id(bus_id, "on_order_created", "~/shop/src/orders.cpp:88", at, "Order"));
  HandlerOptions given = overridden;
  given.id = "handler-one";
  const auto verbatim = bus.on<Order>([](const Order&) {}, given);
  CHECK(verbatim.id() == "handler-one");
  CHECK(verbatim.handler_name() == "on_order_created");
}

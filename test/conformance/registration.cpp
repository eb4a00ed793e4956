// `on`: entries, patterns, order, names, explicit ids: S-REG-1 to S-REG-8, D-LBL-2.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;
using abxbus::test::contains;

using Keys = std::vector<std::pair<std::string, std::vector<std::string>>>;
using Notes = std::vector<std::string>;

struct OrderEvent {};
struct OrderEventMore {};
struct BaseKind {};
struct DerivedKind : BaseKind {};
struct RenamedStruct {
  static constexpr std::string_view event_type = "DeclaredName";
};

std::atomic<int> free_calls = 0;
int free_handler(const OrderEvent&) {
  return ++free_calls;
}

TEST_CASE("on returns the entry, which the bus has when on returns", "[S-REG-1]") {
  EventBus bus("Registers");
  const auto before = Timestamp::now();
  const EventHandler handler = bus.on<OrderEvent>([](const OrderEvent&) {}, {.handler_name = "check_stock",
                                                                             .handler_file_path = "~/shop/stock.cpp:88",
                                                                             .handler_timeout = 2500ms,
                                                                             .handler_slow_timeout = 1s});
  CHECK(handler.handler_name() == "check_stock");
  CHECK(handler.handler_file_path() == "~/shop/stock.cpp:88");
  CHECK(handler.handler_timeout() == Seconds(2.5));
  CHECK(handler.handler_slow_timeout() == Seconds(1));
  CHECK(handler.handler_registered_at() >= before);
  CHECK(handler.handler_registered_at() <= Timestamp::now());
  CHECK(handler.event_pattern() == "OrderEvent");
  CHECK(handler.eventbus_name() == bus.name());
  CHECK(handler.eventbus_id() == bus.id());
  CHECK(handler.id() == compute_handler_id(bus.id(), "check_stock", "~/shop/stock.cpp:88",
                                           handler.handler_registered_at().str(), "OrderEvent"));

  REQUIRE(bus.handlers().size() == 1);
  CHECK(bus.handlers()[0].id() == handler.id());
  CHECK(bus.handler_count() == 1);
  REQUIRE(bus.handler(handler.id()));
  CHECK(bus.handler(handler.id())->handler_name() == "check_stock");
  CHECK_FALSE(bus.handler("unknown"));
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {handler.id()}}});
}

TEST_CASE("an entry without options has the defaults", "[S-REG-1]") {
  EventBus bus("RegistersDefaults");
  const EventHandler handler = bus.on<OrderEvent>([](const OrderEvent&) {});
  CHECK(handler.handler_name() == "anonymous");
  CHECK_THAT(handler.handler_file_path().value_or(""), contains("registration.cpp:"));
  CHECK(handler.handler_timeout() == std::nullopt);
  CHECK(handler.handler_slow_timeout() == std::nullopt);
  CHECK(handler.id().size() == 36);
  EventBus blind("RegistersBlind", {.event_handler_detect_file_paths = false});
  CHECK(blind.on<OrderEvent>([](const OrderEvent&) {}).handler_file_path() == std::nullopt);
}

TEST_CASE("the index lists every key with its handlers in registration order", "[S-REG-1]") {
  EventBus bus("Indexes");
  const std::string a = bus.on<OrderEvent>([](const OrderEvent&) {}).id();
  const std::string b = bus.on("*", [](BaseEvent) {}).id();
  const std::string c = bus.on("Named", [](BaseEvent) {}).id();
  const std::string d = bus.on<OrderEvent>([](const OrderEvent&) {}).id();
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {a, d}}, {"*", {b}}, {"Named", {c}}});
  Notes ids;
  for (const EventHandler& handler : bus.handlers()) ids.push_back(handler.id());
  CHECK(ids == Notes{a, b, c, d});
}

TEST_CASE("a handler label is the name, # and the last four characters of the id", "[D-LBL-2]") {
  EventBus bus("HandlerLabels", {.id = "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"});
  const EventHandler named = bus.on(
      "*", [](BaseEvent) {},
      {.handler_name = "audit_all", .handler_registered_at = Timestamp::parse("2026-03-04T05:06:07.000000002Z")});
  CHECK(named.label() == "audit_all#" + named.id().substr(32));
  const EventHandler anonymous = bus.on("*", [](BaseEvent) {});
  CHECK(anonymous.label() == "anonymous#" + anonymous.id().substr(32));
  CHECK(bus.on("*", [](BaseEvent) {}, {.id = "handler-one", .handler_name = "one"}).label() == "one#-one");
}

TEST_CASE("the id follows from the entry's fields, without path unknown", "[S-REG-1]") {
  EventBus bus("VectorTwo", {.id = "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", .event_handler_detect_file_paths = false});
  const EventHandler handler = bus.on(
      "*", [](BaseEvent) {},
      {.handler_name = "audit_all", .handler_registered_at = Timestamp::parse("2026-03-04T05:06:07.000000002Z")});
  CHECK(handler.id() == "17795f52-3df9-5c6b-ab99-1e1655357db0");
}

TEST_CASE("a pattern matches by equality, * matches everything", "[S-REG-2]") {
  Recorder heard;
  EventBus bus("Matches");
  bus.on("OrderEvent", [&](BaseEvent event) { heard.add("exact " + event.event_type()); });
  bus.on("*", [&](BaseEvent event) { heard.add("star " + event.event_type()); });
  for (const char* type : {"OrderEvent", "OrderEventMore", "Order", "orderevent", "Event"}) {
    bus.emit(BaseEvent::make(type)).wait();
  }
  CHECK(heard.notes() == Notes{"exact OrderEvent", "star OrderEvent", "star OrderEventMore", "star Order",
                               "star orderevent", "star Event"});
}

TEST_CASE("a pattern is no glob", "[S-REG-2]") {
  std::atomic<int> calls = 0;
  EventBus bus("NoGlobs");
  for (const char* pattern : {"Order*", "*Event", "Order.*", "**", "OrderEven?", "OrderEvent|Other", " OrderEvent"}) {
    try {
      bus.on(pattern, [&](BaseEvent) { ++calls; });
    } catch (const ValidationError&) {  // rejecting a text that can match nothing is as good
    }
  }
  const auto event = bus.emit(OrderEvent{});
  event.wait();
  CHECK(calls == 0);
  CHECK(event.event_results().empty());
}

TEST_CASE("a handler of a base type does not get derived types", "[S-REG-2]") {
  Recorder heard;
  EventBus bus("NoInheritance");
  bus.on<BaseKind>([&](const BaseKind&) { heard.add("base"); });
  bus.on<DerivedKind>([&](const DerivedKind&) { heard.add("derived"); });
  bus.emit(DerivedKind{}).wait();
  bus.emit(BaseKind{}).wait();
  CHECK(heard.notes() == Notes{"derived", "base"});
}

TEST_CASE("a type and its name are one key with one ordered list", "[S-REG-3]") {
  Recorder heard;
  EventBus bus("OneKey");
  const std::string a = bus.on<OrderEvent>([&](const OrderEvent&) { heard.add("a"); }).id();
  const std::string b = bus.on("OrderEvent", [&](BaseEvent) { heard.add("b"); }).id();
  const std::string c = bus.on<OrderEvent>([&](BaseEvent) { heard.add("c"); }).id();
  const std::string d = bus.on("OrderEvent", [&](const OrderEvent&) { heard.add("d"); }).id();
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {a, b, c, d}}});
  bus.emit(OrderEvent{}).wait();
  CHECK(heard.notes() == Notes{"a", "b", "c", "d"});
}

TEST_CASE("an untyped event reaches the handlers of the type of its name", "[S-REG-3]") {
  Recorder heard;
  EventBus bus("UntypedReaches");
  bus.on<OrderEvent>([&](const OrderEvent&) { heard.add("payload"); });
  bus.on<OrderEvent>([&](const Event<OrderEvent>& event) { heard.add(event.event_type()); });
  const BaseEvent event = bus.emit(BaseEvent::make("OrderEvent"));
  event.wait();
  CHECK(heard.notes() == Notes{"payload", "OrderEvent"});
  CHECK(event.event_errors().empty());
}

TEST_CASE("a declared event type is the key, not the struct's name", "[S-REG-2][S-REG-3]") {
  Recorder heard;
  EventBus bus("DeclaredKey");
  const EventHandler handler = bus.on<RenamedStruct>([&](const RenamedStruct&) { heard.add("typed"); });
  bus.on("DeclaredName", [&](BaseEvent) { heard.add("named"); });
  bus.on("RenamedStruct", [&](BaseEvent) { heard.add("struct"); });
  CHECK(handler.event_pattern() == "DeclaredName");
  bus.emit(RenamedStruct{}).wait();
  CHECK(heard.notes() == Notes{"typed", "named"});
  bus.emit(OrderEvent{}, {.event_type = "DeclaredName"}).wait();
  CHECK(heard.size() == 4);
}

TEST_CASE("exact handlers run before wildcards, each in registration order", "[S-REG-4][S-REG-5]") {
  Recorder ran;
  EventBus bus("RunOrder");
  const auto noting = [&](std::string name) {
    return [&ran, name](BaseEvent) {
      ran.add(name);
      return name;
    };
  };
  bus.on("*", noting("star1"));
  bus.on<OrderEvent>(noting("exact1"));
  bus.on("*", noting("star2"));
  bus.on("OrderEvent", noting("exact2"));
  const auto event = bus.emit(OrderEvent{});
  event.wait();
  CHECK(ran.notes() == Notes{"exact1", "exact2", "star1", "star2"});
  Notes created;
  for (const EventResult& result : event.event_results()) {
    created.push_back(result.result_as<std::string>().value_or("none"));
  }
  CHECK(created == Notes{"exact1", "exact2", "star1", "star2"});
  // Accessors list by registration time.
  Notes listed;
  for (const auto& value : event.event_results_list<std::string>()) listed.push_back(value.value_or("none"));
  CHECK(listed == Notes{"star1", "exact1", "star2", "exact2"});
  CHECK(event.event_result<std::string>() == "star1");
}

TEST_CASE("one callable registered twice is two entries with two results", "[S-REG-6]") {
  EventBus bus("Twice");
  const int before = free_calls;
  const EventHandler first = bus.on<OrderEvent>(&free_handler);
  const EventHandler second = bus.on<OrderEvent>(&free_handler);
  CHECK(first.id() != second.id());
  CHECK(first != second);
  CHECK(bus.handler_count() == 2);
  const auto event = bus.emit(OrderEvent{});
  event.wait();
  CHECK(free_calls == before + 2);
  REQUIRE(event.event_results().size() == 2);
  CHECK(event.event_results().contains(first.id()));
  CHECK(event.event_results().contains(second.id()));
  CHECK(event.event_results().at(first.id()).result_as<int>() == before + 1);
  CHECK(event.event_results().at(second.id()).result_as<int>() == before + 2);
}

TEST_CASE("a second handler of one name on one key is warned of and registered", "[S-REG-7]") {
  const CapturedLog log;
  EventBus bus("DuplicateNames");
  bus.on<OrderEvent>([](const OrderEvent&) {}, {.handler_name = "same"});
  bus.on("*", [](BaseEvent) {}, {.handler_name = "same"});
  bus.on("Other", [](BaseEvent) {}, {.handler_name = "same"});
  CHECK(log.lines().empty());
  bus.on("OrderEvent", [](BaseEvent) {}, {.handler_name = "same"});
  REQUIRE(log.lines().size() == 1);
  CHECK_THAT(log.lines()[0], contains("already registered for event 'OrderEvent'"));
  CHECK_THAT(log.lines()[0], contains("same"));
  CHECK(bus.handlers_by_key()[0].second.size() == 2);
  CHECK(bus.emit(OrderEvent{}).wait().event_results().size() == 3);
}

TEST_CASE("default names are not compared", "[S-REG-7]") {
  const CapturedLog log;
  EventBus bus("DefaultNames");
  EventBus target("DefaultNamesTarget");
  for (int i = 0; i < 3; ++i) {
    bus.on<OrderEvent>([](const OrderEvent&) {});
    bus.on<OrderEvent>(target.forwarder());
  }
  CHECK(log.lines().empty());
  CHECK(bus.handlers()[1].handler_name() == "emit");
}

TEST_CASE("the duplicate warning can be switched off", "[S-REG-7]") {
  const CapturedLog log;
  EventBus bus("DuplicatesAllowed", {.warn_on_duplicate_handler_names = false});
  for (int i = 0; i < 3; ++i) bus.on<OrderEvent>([](const OrderEvent&) {}, {.handler_name = "same"});
  CHECK(log.lines().empty());
  CHECK(bus.handler_count() == 3);
}

TEST_CASE("keys with more than 256 handlers are not searched for duplicates", "[S-REG-7]") {
  const CapturedLog log;
  EventBus bus("ManyNames");
  for (int i = 0; i < 256; ++i) bus.on("*", [](BaseEvent) {}, {.handler_name = "name" + std::to_string(i)});
  CHECK(log.lines().empty());
  bus.on("*", [](BaseEvent) {}, {.handler_name = "name7"});
  CHECK(log.count("already registered for event '*'") == 1);
  bus.on("*", [](BaseEvent) {}, {.handler_name = "name7"});
  CHECK(log.lines().size() == 1);
  CHECK(bus.handler_count() == 258);
}

TEST_CASE("an explicit id is used as it is", "[S-REG-8]") {
  EventBus bus("ExplicitIds");
  EventBus other("ExplicitIdsOther");
  const EventHandler handler = bus.on<OrderEvent>([](const OrderEvent&) { return 1; }, {.id = "Handler ONE"});
  CHECK(handler.id() == "Handler ONE");
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {"Handler ONE"}}});
  REQUIRE(bus.handler("Handler ONE"));
  CHECK(bus.emit(OrderEvent{}).wait().event_results().at("Handler ONE").result_as<int>() == 1);
  CHECK(other.on<OrderEvent>([](const OrderEvent&) {}, {.id = "Handler ONE"}).id() == "Handler ONE");
}

TEST_CASE("an id used again under its key replaces the entry in place", "[S-REG-8]") {
  Recorder ran;
  EventBus bus("ReplacesIds");
  bus.on<OrderEvent>([&](const OrderEvent&) { ran.add("before"); }, {.id = "a"});
  bus.on<OrderEvent>([&](const OrderEvent&) { ran.add("old"); }, {.id = "b", .handler_name = "old_name"});
  bus.on<OrderEvent>([&](const OrderEvent&) { ran.add("after"); }, {.id = "c"});
  bus.on("OrderEvent", [&](BaseEvent) { ran.add("new"); }, {.id = "b", .handler_name = "new_name"});
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {"a", "b", "c"}}});
  CHECK(bus.handler_count() == 3);
  CHECK(bus.handler("b")->handler_name() == "new_name");
  const auto event = bus.emit(OrderEvent{});
  event.wait();
  CHECK(ran.notes() == Notes{"before", "new", "after"});
  CHECK(event.event_results().size() == 3);
  CHECK(event.event_results().at("b").handler_name() == "new_name");
}

TEST_CASE("a generated id used again explicitly replaces that entry", "[S-REG-8]") {
  Recorder ran;
  EventBus bus("ReplacesGenerated");
  const std::string id = bus.on<OrderEvent>([&](const OrderEvent&) { ran.add("old"); }).id();
  bus.on<OrderEvent>([&](const OrderEvent&) { ran.add("new"); }, {.id = id});
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {id}}});
  bus.emit(OrderEvent{}).wait();
  CHECK(ran.notes() == Notes{"new"});
}

TEST_CASE("an id of another key is rejected", "[S-REG-8]") {
  Recorder ran;
  EventBus bus("ForeignIds");
  bus.on<OrderEvent>([&](const OrderEvent&) { ran.add("first"); }, {.id = "taken"});
  CHECK_THROWS_AS(bus.on("*", [&](BaseEvent) { ran.add("second"); }, {.id = "taken"}), ValidationError);
  CHECK_THROWS_AS(bus.on<OrderEventMore>([&](const OrderEventMore&) {}, {.id = "taken"}), ValidationError);
  CHECK(bus.handlers_by_key() == Keys{{"OrderEvent", {"taken"}}});
  bus.emit(OrderEvent{}).wait();
  CHECK(ran.notes() == Notes{"first"});
}

}  // namespace

// Options, ids, names and labels of a bus: S-BUS-1 to S-BUS-9, D-NAME-1, D-LBL-1.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct StandaloneEvent {};

bool listed(const EventBusRef& bus, const Domain& domain = Domain::default_domain()) {
  const std::vector<EventBusRef> buses = EventBus::all_instances(domain);
  return std::find(buses.begin(), buses.end(), bus) != buses.end();
}

std::string construction_error(EventBusOptions options) {
  return message_of<ValidationError>([&] { EventBus bus("Rejected", options); });
}

std::string name_error(std::string_view name) {
  return message_of<ValidationError>([&] { EventBus bus(name); });
}

TEST_CASE("a bus without options has the documented defaults", "[S-BUS-1]") {
  EventBus bus("BusDefaults");
  const EventBusOptions options = bus.options();
  CHECK(options.id == bus.id());
  CHECK(options.event_concurrency == EventConcurrency::bus_serial);
  CHECK(options.event_handler_concurrency == EventHandlerConcurrency::serial);
  CHECK(options.event_handler_completion == EventHandlerCompletion::all);
  CHECK(options.event_timeout == Seconds(60));
  CHECK(options.event_slow_timeout == Seconds(300));
  CHECK(options.event_handler_slow_timeout == Seconds(30));
  CHECK(options.max_history_size == 100U);
  CHECK_FALSE(options.max_history_drop);
  CHECK(options.event_handler_detect_file_paths);
  CHECK(options.warn_on_duplicate_handler_names);
  CHECK(options.destroy_grace == Seconds(5));
  CHECK(options.inline_deadline_floor == Seconds(10));
  CHECK(options.domain == Domain::default_domain());
  CHECK(options.executor == Executor::default_executor());
}

TEST_CASE("a new bus is empty, idle and listed", "[S-BUS-1]") {
  EventBus bus("BusNew");
  CHECK(bus.event_history().size() == 0);
  CHECK(bus.event_history().events().empty());
  CHECK(bus.handlers().empty());
  CHECK(bus.handlers_by_key().empty());
  CHECK(bus.handler_count() == 0);
  CHECK(bus.pending_event_queue().empty());
  CHECK(bus.events_pending().empty());
  CHECK(bus.events_started().empty());
  CHECK(bus.events_completed().empty());
  CHECK(bus.find_waiter_count() == 0);
  CHECK(bus.is_idle());
  CHECK(bus.is_idle_and_queue_empty());
  CHECK(bus.wait_until_idle());
  CHECK_FALSE(bus.is_destroyed());
  CHECK_FALSE(bus.expired());
  CHECK(listed(bus));
}

TEST_CASE("options given to a bus read back unchanged", "[S-BUS-2]") {
  const Domain domain;
  const Executor executor({.workers = 1});
  const EventBusOptions given{.id = "018f8e40-1234-7000-8000-0000000000aa",
                              .event_concurrency = EventConcurrency::global_serial,
                              .event_handler_concurrency = EventHandlerConcurrency::parallel,
                              .event_handler_completion = EventHandlerCompletion::first,
                              .event_timeout = 1.5s,
                              .event_slow_timeout = 2s,
                              .event_handler_slow_timeout = 250ms,
                              .max_history_size = 7,
                              .max_history_drop = true,
                              .event_handler_detect_file_paths = false,
                              .warn_on_duplicate_handler_names = false,
                              .destroy_grace = 3s,
                              .inline_deadline_floor = 4s,
                              .domain = domain,
                              .executor = executor};
  EventBus bus("BusExplicit", given);
  const EventBusOptions read = bus.options();
  CHECK(read.id == given.id);
  CHECK(read.event_concurrency == given.event_concurrency);
  CHECK(read.event_handler_concurrency == given.event_handler_concurrency);
  CHECK(read.event_handler_completion == given.event_handler_completion);
  CHECK(read.event_timeout == given.event_timeout);
  CHECK(read.event_slow_timeout == given.event_slow_timeout);
  CHECK(read.event_handler_slow_timeout == given.event_handler_slow_timeout);
  CHECK(read.max_history_size == given.max_history_size);
  CHECK(read.max_history_drop == given.max_history_drop);
  CHECK(read.event_handler_detect_file_paths == given.event_handler_detect_file_paths);
  CHECK(read.warn_on_duplicate_handler_names == given.warn_on_duplicate_handler_names);
  CHECK(read.destroy_grace == given.destroy_grace);
  CHECK(read.inline_deadline_floor == given.inline_deadline_floor);
  CHECK(read.domain == domain);
  CHECK(read.executor == executor);
}

TEST_CASE("zero is kept, an unset timeout becomes the default, an unset history size stays unlimited", "[S-BUS-2]") {
  EventBus zero("BusZero", {.event_timeout = 0s,
                            .event_slow_timeout = 0s,
                            .event_handler_slow_timeout = 0s,
                            .max_history_size = 0,
                            .destroy_grace = 0s,
                            .inline_deadline_floor = 0s});
  CHECK(zero.options().event_timeout == Seconds(0));
  CHECK(zero.options().event_slow_timeout == Seconds(0));
  CHECK(zero.options().event_handler_slow_timeout == Seconds(0));
  CHECK(zero.options().max_history_size == 0U);
  CHECK(zero.options().destroy_grace == Seconds(0));
  CHECK(zero.options().inline_deadline_floor == Seconds(0));

  EventBus unset("BusUnset", {.event_timeout = std::nullopt,
                              .event_slow_timeout = std::nullopt,
                              .event_handler_slow_timeout = std::nullopt,
                              .max_history_size = std::nullopt});
  CHECK(unset.options().event_timeout == Seconds(60));
  CHECK(unset.options().event_slow_timeout == Seconds(300));
  CHECK(unset.options().event_handler_slow_timeout == Seconds(30));
  CHECK(unset.options().max_history_size == std::nullopt);
}

TEST_CASE("negative bus timeouts are rejected by name", "[S-BUS-3]") {
  using abxbus::test::contains;
  const Domain domain;
  CHECK_THAT(construction_error({.event_timeout = -1s, .domain = domain}),
             contains("event_timeout must be >= 0 or null"));
  CHECK_THAT(construction_error({.event_slow_timeout = -1ms, .domain = domain}),
             contains("event_slow_timeout must be >= 0 or null"));
  CHECK_THAT(construction_error({.event_handler_slow_timeout = Seconds(-0.5), .domain = domain}),
             contains("event_handler_slow_timeout must be >= 0 or null"));
  CHECK(EventBus::all_instances(domain).empty());
}

TEST_CASE("mode strings convert both ways", "[S-BUS-5]") {
  CHECK(to_string(EventConcurrency::global_serial) == "global-serial");
  CHECK(to_string(EventConcurrency::bus_serial) == "bus-serial");
  CHECK(to_string(EventConcurrency::parallel) == "parallel");
  CHECK(to_string(EventHandlerConcurrency::serial) == "serial");
  CHECK(to_string(EventHandlerConcurrency::parallel) == "parallel");
  CHECK(to_string(EventHandlerCompletion::all) == "all");
  CHECK(to_string(EventHandlerCompletion::first) == "first");
  CHECK(from_string<EventConcurrency>("global-serial") == EventConcurrency::global_serial);
  CHECK(from_string<EventConcurrency>("bus-serial") == EventConcurrency::bus_serial);
  CHECK(from_string<EventConcurrency>("parallel") == EventConcurrency::parallel);
  CHECK(from_string<EventHandlerConcurrency>("serial") == EventHandlerConcurrency::serial);
  CHECK(from_string<EventHandlerConcurrency>("parallel") == EventHandlerConcurrency::parallel);
  CHECK(from_string<EventHandlerCompletion>("all") == EventHandlerCompletion::all);
  CHECK(from_string<EventHandlerCompletion>("first") == EventHandlerCompletion::first);
}

TEST_CASE("an unknown mode string is rejected with the choices", "[S-BUS-5]") {
  for (const std::string text : {"", "serial", "Parallel", "bus_serial", "parallel "}) {
    CAPTURE(text);
    CHECK(message_of<ValidationError>([&] { return from_string<EventConcurrency>(text); }) ==
          "event_concurrency must be \"global-serial\", \"bus-serial\", or \"parallel\", got: " + text);
  }
  for (const std::string text : {"", "bus-serial", "global-serial", "SERIAL"}) {
    CAPTURE(text);
    CHECK(message_of<ValidationError>([&] { return from_string<EventHandlerConcurrency>(text); }) ==
          "event_handler_concurrency must be \"serial\" or \"parallel\", got: " + text);
  }
  for (const std::string text : {"", "any", "First", "parallel"}) {
    CAPTURE(text);
    CHECK(message_of<ValidationError>([&] { return from_string<EventHandlerCompletion>(text); }) ==
          "event_handler_completion must be \"all\" or \"first\", got: " + text);
  }
}

TEST_CASE("a malformed bus id is rejected and leaves nothing behind", "[S-BUS-6]") {
  const Domain domain;
  for (const std::string id : {"zzz", "", "018f8e40123470008000000000001234", "018f8e40-1234-7000-8000-00000000123",
                               "018f8e40-1234-7000-8000-0000000012345", "018f8e40-1234-7000-8000-00000000123g",
                               "018f8e4-01234-7000-8000-000000001234", "{018f8e40-1234-7000-8000-000000001234}",
                               " 018f8e40-1234-7000-8000-00000000123", "018f8e40_1234_7000_8000_000000001234"}) {
    CAPTURE(id);
    CHECK_THROWS_AS(EventBus("BusBadId", {.id = id, .domain = domain}), ValidationError);
  }
  CHECK(EventBus::all_instances(domain).empty());
}

TEST_CASE("a given bus id is stored in lower case and used for handler ids and label", "[S-BUS-6][S-BUS-7][D-LBL-1]") {
  EventBus bus("BusWithId", {.id = "018F8E40-1234-7000-8000-000000001234"});
  CHECK(bus.id() == "018f8e40-1234-7000-8000-000000001234");
  CHECK(bus.label() == "BusWithId#1234");
  const EventHandler handler = bus.on<StandaloneEvent>(
      [](const StandaloneEvent&) {}, {.handler_name = "pkg.module.handler",
                                      .handler_file_path = "~/project/app.py:123",
                                      .handler_registered_at = Timestamp::parse("2025-01-02T03:04:05.678901000Z")});
  CHECK(handler.eventbus_id() == bus.id());
  CHECK(handler.id() == "19ea9fe8-cfbe-541e-8a35-2579e4e9efff");

  EventBus upper("BusWithLetters", {.id = "018F8E40-1234-4000-8000-00000000ABCD"});
  CHECK(upper.id() == "018f8e40-1234-4000-8000-00000000abcd");
  CHECK(upper.label() == "BusWithLetters#abcd");
  CHECK(upper.options().id == upper.id());
}

TEST_CASE("a label is the name, # and the last four characters of the id", "[S-BUS-7][D-LBL-1]") {
  EventBus shop("ShopBus", {.id = "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"});
  CHECK(shop.label() == "ShopBus#4a5b");
  EventBus generated("BusLabel");
  CHECK(generated.label() == "BusLabel#" + generated.id().substr(32));
  const BaseEvent event = generated.emit(StandaloneEvent{});
  CHECK(event.event_path() == std::vector<std::string>{generated.label()});
  event.wait();
}

TEST_CASE("a bus without name is called after its id", "[S-BUS-8]") {
  EventBus absent;
  EventBus empty("");
  CHECK(absent.name() == "EventBus_" + absent.id().substr(28));
  CHECK(empty.name() == "EventBus_" + empty.id().substr(28));
  CHECK(absent.id().size() == 36);
  CHECK(absent.name() != empty.name());
  EventBus given("", {.id = "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"});
  CHECK(given.name() == "EventBus_2e3f4a5b");
  CHECK(given.label() == "EventBus_2e3f4a5b#4a5b");
}

TEST_CASE("identifiers are accepted as bus names", "[S-BUS-9][D-NAME-1]") {
  for (const std::string name :
       {"A", "z", "Bus1", "a_b_", "aZ09__9", "\xC3\x84pfel", "b\xC3\xBCro_2", "\xE5\x90\x8D\xE5\x89\x8D"}) {
    CAPTURE(name);
    EventBus bus(name);
    CHECK(bus.name() == name);
    CHECK(bus.label() == name + "#" + bus.id().substr(32));
    bus.on("*", [](BaseEvent) {});
    CHECK(bus.handler_count() == 1);
  }
}

TEST_CASE("other texts are rejected as bus names and leave nothing behind", "[S-BUS-9][D-NAME-1]") {
  const std::size_t before = EventBus::all_instances().size();
  for (const std::string name : {"_", "_Bus", "1Bus", "9", "a b", " a", "a ", "a-b", "a.b", "a#1234", "a/b", "*", "a*",
                                 "a\n", "\ta", "a:b", "\"a\"", "a!"}) {
    CAPTURE(name);
    CHECK(name_error(name) == "EventBus name must be a unique identifier string, got: " + name);
  }
  CHECK_THROWS_AS(EventBus(std::string_view("a\0b", 3)), ValidationError);
  CHECK(EventBus::all_instances().size() == before);
}

}  // namespace

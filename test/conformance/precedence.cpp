// Which level wins, and that bus defaults are never copied onto the event: S-PREC-1, -2, -4, -5.

#include "support/catch.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct PlainEvent {};

struct GlobalByType {
  static constexpr EventConcurrency event_concurrency = EventConcurrency::global_serial;
};

struct DeclaredDefaults {
  static constexpr std::string_view event_version = "1.2.3";
  static constexpr Seconds event_timeout{12};
  static constexpr Seconds event_slow_timeout{13};
  static constexpr EventConcurrency event_concurrency = EventConcurrency::parallel;
  static constexpr Seconds event_handler_timeout{0};
  static constexpr Seconds event_handler_slow_timeout{15};
  static constexpr EventHandlerConcurrency event_handler_concurrency = EventHandlerConcurrency::parallel;
  static constexpr EventHandlerCompletion event_handler_completion = EventHandlerCompletion::first;
};

struct SerialHandlersByType {
  static constexpr EventHandlerConcurrency event_handler_concurrency = EventHandlerConcurrency::serial;
};

struct FirstByType {
  static constexpr EventHandlerCompletion event_handler_completion = EventHandlerCompletion::first;
};

EventBusOptions unusual_bus() {
  return {.event_concurrency = EventConcurrency::parallel,
          .event_handler_concurrency = EventHandlerConcurrency::parallel,
          .event_handler_completion = EventHandlerCompletion::first,
          .event_timeout = 40s,
          .event_slow_timeout = 41s,
          .event_handler_slow_timeout = 42s};
}

bool all_unset(const BaseEvent& event) {
  return !event.event_timeout() && !event.event_slow_timeout() && !event.event_concurrency() &&
         !event.event_handler_timeout() && !event.event_handler_slow_timeout() && !event.event_handler_concurrency() &&
         !event.event_handler_completion();
}

TEST_CASE("unset event fields stay unset through emit and completion", "[S-PREC-1]") {
  std::atomic<bool> unset_in_handler = false;
  EventBus bus("KeepsUnset", unusual_bus());
  bus.on<PlainEvent>([&](const Event<PlainEvent>& event) { unset_in_handler = all_unset(event); });

  SECTION("omitted") {
    const auto event = bus.emit(PlainEvent{});
    CHECK(all_unset(event));
    event.wait();
    CHECK(all_unset(event));
  }
  SECTION("explicitly null") {
    const auto event = bus.emit(PlainEvent{}, {.event_timeout = std::nullopt,
                                               .event_slow_timeout = std::nullopt,
                                               .event_concurrency = std::nullopt,
                                               .event_handler_timeout = std::nullopt,
                                               .event_handler_slow_timeout = std::nullopt,
                                               .event_handler_concurrency = std::nullopt,
                                               .event_handler_completion = std::nullopt});
    CHECK(all_unset(event));
    event.wait();
    CHECK(all_unset(event));
  }
  SECTION("set back to null") {
    const auto event =
        make_event(PlainEvent{}, {.event_timeout = 3s, .event_concurrency = EventConcurrency::bus_serial});
    event.set_event_timeout(std::nullopt);
    event.set_event_concurrency(std::nullopt);
    bus.emit(event).wait();
    CHECK(all_unset(event));
  }
  CHECK(unset_in_handler);
  CHECK(all_unset(bus.event_history().events().at(0)));
}

TEST_CASE("the type's declared defaults are the event's own values", "[S-PREC-2]") {
  EventBus bus("TypeDefaults");
  const auto event = bus.emit(DeclaredDefaults{});
  event.wait();
  CHECK(event.event_version() == "1.2.3");
  CHECK(event.event_timeout() == Seconds(12));
  CHECK(event.event_slow_timeout() == Seconds(13));
  CHECK(event.event_concurrency() == EventConcurrency::parallel);
  CHECK(event.event_handler_timeout() == Seconds(0));
  CHECK(event.event_handler_slow_timeout() == Seconds(15));
  CHECK(event.event_handler_concurrency() == EventHandlerConcurrency::parallel);
  CHECK(event.event_handler_completion() == EventHandlerCompletion::first);
}

TEST_CASE("an instance's values beat the type's, field by field", "[S-PREC-2]") {
  EventBus bus("InstanceValues");
  const auto event = bus.emit(DeclaredDefaults{}, {.event_version = "9.9.9",
                                                   .event_timeout = 0s,
                                                   .event_concurrency = EventConcurrency::bus_serial,
                                                   .event_handler_slow_timeout = 1500ms,
                                                   .event_handler_completion = EventHandlerCompletion::all});
  event.wait();
  CHECK(event.event_version() == "9.9.9");
  CHECK(event.event_timeout() == Seconds(0));
  CHECK(event.event_slow_timeout() == Seconds(13));
  CHECK(event.event_concurrency() == EventConcurrency::bus_serial);
  CHECK(event.event_handler_timeout() == Seconds(0));
  CHECK(event.event_handler_slow_timeout() == Seconds(1.5));
  CHECK(event.event_handler_concurrency() == EventHandlerConcurrency::parallel);
  CHECK(event.event_handler_completion() == EventHandlerCompletion::all);
}

TEST_CASE("type default global-serial on a parallel bus, instance parallel", "[S-PREC-2]") {
  EventBus bus("TypeBeatsBus", {.event_concurrency = EventConcurrency::parallel});
  const auto by_type = bus.emit(GlobalByType{});
  const auto by_instance = bus.emit(GlobalByType{}, {.event_concurrency = EventConcurrency::parallel});
  const auto by_bus = bus.emit(PlainEvent{});
  by_type.wait();
  by_instance.wait();
  CHECK(by_type.event_concurrency() == EventConcurrency::global_serial);
  CHECK(by_instance.event_concurrency() == EventConcurrency::parallel);
  CHECK(by_bus.event_concurrency() == std::nullopt);
  CHECK(bus.resolve_event_lock(by_type) == EventLock::global);
  CHECK(bus.resolve_event_lock(by_instance) == EventLock::none);
  CHECK(bus.resolve_event_lock(by_bus) == EventLock::none);
}

TEST_CASE("the level that wins decides what happens", "[S-PREC-2]") {
  Meeting type_serial;
  Meeting instance_parallel;
  std::atomic<int> calls = 0;
  EventBus bus("WinnerActs", {.event_handler_concurrency = EventHandlerConcurrency::parallel});

  SECTION("handler concurrency") {
    for (int i = 0; i < 2; ++i) {
      bus.on<SerialHandlersByType>([&](const Event<SerialHandlersByType>& event) {
        if (event.event_handler_concurrency() == EventHandlerConcurrency::serial) {
          type_serial.meet(2, 15ms);
        } else {
          instance_parallel.meet(2);
        }
      });
    }
    bus.emit(SerialHandlersByType{}).wait();
    bus.emit(SerialHandlersByType{}, {.event_handler_concurrency = EventHandlerConcurrency::parallel}).wait();
    CHECK(type_serial.max() == 1);
    CHECK(instance_parallel.max() == 2);
  }
  SECTION("handler completion") {
    for (int i = 0; i < 3; ++i) bus.on<FirstByType>([&](const FirstByType&) { return ++calls; });
    const EventHandlerConcurrency serial = EventHandlerConcurrency::serial;
    bus.emit(FirstByType{}, {.event_handler_concurrency = serial}).wait();
    CHECK(calls == 1);
    bus.emit(FirstByType{},
             {.event_handler_concurrency = serial, .event_handler_completion = EventHandlerCompletion::all})
        .wait();
    CHECK(calls == 4);
  }
}

template <class Options>
concept has_modes = requires(Options options) {
  options.handler_concurrency;
}
|| requires(Options options) {
  options.event_handler_concurrency;
}
|| requires(Options options) {
  options.handler_completion;
}
|| requires(Options options) {
  options.event_handler_completion;
};

template <class Handle>
concept shows_modes = requires(const Handle& handle) {
  handle.handler_concurrency();
}
|| requires(const Handle& handle) {
  handle.event_handler_concurrency();
}
|| requires(const Handle& handle) {
  handle.handler_completion();
}
|| requires(const Handle& handle) {
  handle.event_handler_completion();
};

TEST_CASE("a registration carries two timeouts and no mode", "[S-PREC-4]") {
  STATIC_REQUIRE(has_modes<EventOptions>);
  STATIC_REQUIRE(shows_modes<BaseEvent>);
  STATIC_REQUIRE_FALSE(has_modes<HandlerOptions>);
  STATIC_REQUIRE_FALSE(shows_modes<EventHandler>);

  EventBus bus("HandlerSettings");
  const EventHandler both =
      bus.on<PlainEvent>([](const PlainEvent&) {}, {.handler_timeout = 2500ms, .handler_slow_timeout = 0s});
  const EventHandler none = bus.on<PlainEvent>([](const PlainEvent&) {});
  CHECK(both.handler_timeout() == Seconds(2.5));
  CHECK(both.handler_slow_timeout() == Seconds(0));
  CHECK(none.handler_timeout() == std::nullopt);
  CHECK(none.handler_slow_timeout() == std::nullopt);
}

TEST_CASE("parallel events overlap on a bus-serial bus", "[S-PREC-5]") {
  Meeting meeting;
  EventBus bus("SerialBusParallelEvents");
  bus.on<PlainEvent>([&](const PlainEvent&) { return meeting.meet(3); });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 3; ++i) {
    events.push_back(bus.emit(PlainEvent{}, {.event_concurrency = EventConcurrency::parallel}));
  }
  for (const BaseEvent& event : events) CHECK(event.wait().event_results()[0].result_as<bool>() == true);
  CHECK(meeting.max() == 3);
}

TEST_CASE("bus-serial events do not overlap on a parallel bus", "[S-PREC-5]") {
  Meeting serial;
  Meeting parallel;
  EventBus bus("ParallelBusSerialEvents", {.event_concurrency = EventConcurrency::parallel});
  bus.on<PlainEvent>([&](const Event<PlainEvent>& event) {
    if (event.event_concurrency()) {
      serial.meet(2, 10ms);
    } else {
      parallel.meet(2);
    }
  });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(bus.emit(PlainEvent{}, {.event_concurrency = EventConcurrency::bus_serial}));
  }
  for (int i = 0; i < 2; ++i) events.push_back(bus.emit(PlainEvent{}));
  for (const BaseEvent& event : events) event.wait();
  CHECK(serial.max() == 1);
  CHECK(parallel.max() == 2);
}

}  // namespace

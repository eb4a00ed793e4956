// Duration fields: units, defaults, refusals, and which one counts for a run.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <optional>
#include <string>
#include <type_traits>

using namespace abxbus;
using namespace testing;

namespace {

struct Ping {
  int n = 0;
};
struct Hurried {
  static constexpr auto event_timeout = std::chrono::milliseconds(3500);
  static constexpr auto event_handler_timeout = std::chrono::milliseconds(1250);
};

/// The refusal of `call`: "<field>|<text>", "" when it was accepted.
template <class F>
std::string refusal(F&& call) {
  const auto error = thrown_by(call);
  const auto* refused = error_as<ValidationError>(error);
  return refused == nullptr ? std::string() : std::string(refused->field()) + "|" + refused->what();
}
std::string must_not_be_negative(const std::string& field) {
  return field + "|" + field + " must be >= 0 or null";
}

/// The effective timeout of the only result of a fresh event on `bus`.
double effective(const EventBusRef& bus, const EventOptions& options) {
  const auto event = bus.emit(Ping{}, options).now();
  return number(event.event_results()[0].timeout());
}

}  // namespace

TEST_CASE("durations are seconds made from any chrono unit; unset and zero are different", "[T-CNV-1]") {
  STATIC_REQUIRE(std::is_same_v<Seconds, std::chrono::duration<double>>);
  const auto event = make_event(
      Ping{}, {.event_timeout = 1500ms, .event_slow_timeout = std::chrono::minutes(2), .event_handler_timeout = 0s});
  CHECK(number(event.event_timeout()) == 1.5);
  CHECK(number(event.event_slow_timeout()) == 120.0);
  CHECK(event.event_handler_timeout().has_value());
  CHECK(number(event.event_handler_timeout()) == 0.0);
  CHECK_FALSE(event.event_handler_slow_timeout().has_value());
}

TEST_CASE("seconds in messages are the shortest decimal", "[T-CNV-2]") {
  Gate gate;
  EventBus bus("CnvDecimal");
  const OpenAtEnd open(gate);
  bus.on<Ping>([&](const Ping&) { gate.wait(); });
  const auto event = bus.emit(Ping{});
  const auto message = [&](Seconds limit) { return error_message(thrown_by([&] { event.wait({.timeout = limit}); })); };
  CHECK(message(0.05s) == "Timed out waiting for Ping completion after 0.05s");
  CHECK(message(25ms) == "Timed out waiting for Ping completion after 0.025s");
  CHECK(message(Seconds(0.1)) == "Timed out waiting for Ping completion after 0.1s");
  CHECK(message(1s) == "Timed out waiting for Ping completion after 1s");
}

TEST_CASE("bus time limits have defaults, and zero disables them", "[T-TMO-1]") {
  EventBus bus("TmoDefaults");
  CHECK(number(bus.options().event_timeout) == 60.0);
  CHECK(number(bus.options().event_slow_timeout) == 300.0);
  CHECK(number(bus.options().event_handler_slow_timeout) == 30.0);
  bus.on<Ping>([](const Ping&) {});
  CHECK(effective(bus, {}) == 60.0);

  EventBus unlimited("TmoDisabled", {.event_timeout = 0s, .event_slow_timeout = 0s, .event_handler_slow_timeout = 0s});
  CHECK(number(unlimited.options().event_timeout) == 0.0);
  CHECK(number(unlimited.options().event_slow_timeout) == 0.0);
  CHECK(number(unlimited.options().event_handler_slow_timeout) == 0.0);
  unlimited.on<Ping>([](const Ping&) {});
  CHECK(effective(unlimited, {}) == -1.0);
}

TEST_CASE("event time limits are unset by default", "[T-TMO-2]") {
  const auto plain = make_event(Ping{});
  CHECK_FALSE(plain.event_timeout().has_value());
  CHECK_FALSE(plain.event_handler_timeout().has_value());
  CHECK_FALSE(plain.event_slow_timeout().has_value());
  CHECK_FALSE(plain.event_handler_slow_timeout().has_value());

  const auto full = make_event(
      Ping{},
      {.event_timeout = 4s, .event_slow_timeout = 3s, .event_handler_timeout = 2s, .event_handler_slow_timeout = 1s});
  CHECK(number(full.event_timeout()) == 4.0);
  CHECK(number(full.event_slow_timeout()) == 3.0);
  CHECK(number(full.event_handler_timeout()) == 2.0);
  CHECK(number(full.event_handler_slow_timeout()) == 1.0);

  const auto typed = make_event(Hurried{});
  CHECK(number(typed.event_timeout()) == 3.5);
  CHECK(number(typed.event_handler_timeout()) == 1.25);
}

TEST_CASE("handler time limits are unset by default, an option of on() and settable later", "[T-TMO-3]") {
  EventBus bus("TmoHandlerFields");
  const auto plain = bus.on<Ping>([](const Ping&) {});
  CHECK_FALSE(plain.handler_timeout().has_value());
  CHECK_FALSE(plain.handler_slow_timeout().has_value());
  const auto limited = bus.on<Ping>([](const Ping&) {}, {.handler_timeout = 3s, .handler_slow_timeout = 2s});
  CHECK(number(limited.handler_timeout()) == 3.0);
  CHECK(number(limited.handler_slow_timeout()) == 2.0);
  limited.set_handler_timeout(5s);
  limited.set_handler_slow_timeout(std::nullopt);
  CHECK(number(limited.handler_timeout()) == 5.0);
  CHECK_FALSE(limited.handler_slow_timeout().has_value());
  const auto event = bus.emit(Ping{}).now();
  CHECK(number(event.event_results()[1].timeout()) == 5.0);
}

TEST_CASE("a changed handler timeout counts for runs that start after the change", "[T-TMO-3]") {
  Gate first, second;
  EventBus bus("TmoHandlerChange", {.event_timeout = 0s});
  const OpenAtEnd open(first, second);
  const auto handler = bus.on<Ping>([&](const Ping& ping) { return (ping.n == 1 ? first : second).wait(); });
  const auto running = bus.emit(Ping{1});
  REQUIRE(first.wait_for_arrivals(1));
  handler.set_handler_timeout(20ms);
  std::this_thread::sleep_for(80ms);
  CHECK(outcomes(running) == std::vector<std::string>{"started"});
  first.open();
  running.wait();
  CHECK(outcomes(running) == std::vector<std::string>{"completed"});

  const auto later = bus.emit(Ping{2}).wait();
  CHECK(outcomes(later) == std::vector<std::string>{"EventHandlerTimeoutError"});
  CHECK(number(later.event_results()[0].timeout()) == 0.02);
}

TEST_CASE("an unset handler timeout falls back to the event timeout", "[T-TMO-4][T-TMO-10]") {
  EventBus bus("TmoFallback", {.event_timeout = 12s});
  bus.on<Ping>([](const Ping&) {});
  CHECK(effective(bus, {}) == 12.0);
  CHECK(effective(bus, {.event_timeout = 7s}) == 7.0);
  CHECK(effective(bus, {.event_timeout = 0s}) == -1.0);
  EventBus other("TmoFallbackNone", {.event_timeout = 0s});
  other.on<Ping>([](const Ping&) {});
  CHECK(effective(other, {.event_timeout = 7s}) == 7.0);
}

TEST_CASE("negative time limits are refused and nothing is created", "[T-TMO-5]") {
  const auto buses = EventBus::all_instances().size();
  CHECK(refusal([] { EventBus("TmoBad", {.event_timeout = -1s}); }) == must_not_be_negative("event_timeout"));
  CHECK(refusal([] { EventBus("TmoBad", {.event_slow_timeout = -1ms}); }) ==
        must_not_be_negative("event_slow_timeout"));
  CHECK(refusal([] { EventBus("TmoBad", {.event_handler_slow_timeout = -1s}); }) ==
        must_not_be_negative("event_handler_slow_timeout"));
  CHECK(EventBus::all_instances().size() == buses);

  CHECK(refusal([] { make_event(Ping{}, {.event_timeout = -1s}); }) == must_not_be_negative("event_timeout"));
  CHECK(refusal([] { make_event(Ping{}, {.event_slow_timeout = -1s}); }) == must_not_be_negative("event_slow_timeout"));
  CHECK(refusal([] { make_event(Ping{}, {.event_handler_timeout = -1s}); }) ==
        must_not_be_negative("event_handler_timeout"));
  CHECK(refusal([] { make_event(Ping{}, {.event_handler_slow_timeout = -1s}); }) ==
        must_not_be_negative("event_handler_slow_timeout"));

  EventBus bus("TmoRefusals");
  CHECK(refusal([&] { bus.emit(Ping{}, {.event_timeout = -0.5s}); }) == must_not_be_negative("event_timeout"));
  CHECK(bus.event_history().size() == 0);
  CHECK(refusal([&] { bus.on<Ping>([](const Ping&) {}, {.handler_timeout = -1s}); }) ==
        must_not_be_negative("handler_timeout"));
  CHECK(refusal([&] { bus.on<Ping>([](const Ping&) {}, {.handler_slow_timeout = -1s}); }) ==
        must_not_be_negative("handler_slow_timeout"));
  CHECK(bus.handlers().empty());

  const auto event = make_event(Ping{}, {.event_timeout = 2s});
  CHECK(refusal([&] { event.set_event_timeout(-1s); }) == must_not_be_negative("event_timeout"));
  CHECK(refusal([&] { event.set_event_handler_timeout(-1s); }) == must_not_be_negative("event_handler_timeout"));
  CHECK(refusal([&] { event.set_event_slow_timeout(-1s); }) == must_not_be_negative("event_slow_timeout"));
  CHECK(refusal([&] { event.set_event_handler_slow_timeout(-1s); }) ==
        must_not_be_negative("event_handler_slow_timeout"));
  CHECK(number(event.event_timeout()) == 2.0);
  const auto handler = bus.on<Ping>([](const Ping&) {});
  CHECK(refusal([&] { handler.set_handler_timeout(-1s); }) == must_not_be_negative("handler_timeout"));
  CHECK(refusal([&] { handler.set_handler_slow_timeout(-1s); }) == must_not_be_negative("handler_slow_timeout"));
  CHECK_FALSE(handler.handler_timeout().has_value());
}

TEST_CASE("limits are resolved when the run starts and never written back", "[T-TMO-6]") {
  Gate gate;
  EventBus bus("TmoResolved", {.event_timeout = 12s});
  const OpenAtEnd open(gate);
  bus.on<Ping>([&](const Ping& ping) {
    if (ping.n == 1) gate.wait();
  });
  const auto blocker = bus.emit(Ping{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Ping{2});
  const auto untouched = bus.emit(Ping{3});
  queued.set_event_timeout(5s);
  gate.open();
  queued.wait();
  untouched.wait();
  CHECK(number(queued.event_results()[0].timeout()) == 5.0);
  CHECK(number(untouched.event_results()[0].timeout()) == 12.0);

  CHECK_FALSE(untouched.event_timeout().has_value());
  CHECK_FALSE(untouched.event_handler_timeout().has_value());
  CHECK_FALSE(untouched.event_slow_timeout().has_value());
  CHECK_FALSE(untouched.event_handler_slow_timeout().has_value());
  CHECK_FALSE(untouched.event_concurrency().has_value());
  CHECK_FALSE(untouched.event_handler_concurrency().has_value());
  CHECK_FALSE(untouched.event_handler_completion().has_value());
}

TEST_CASE("the handler's timeout beats the event's handler timeout, zero included", "[T-TMO-11]") {
  EventBus bus("TmoExplicit", {.event_timeout = 0s});
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "own", .handler_timeout = 9s});
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "none_of_its_own", .handler_timeout = 0s});
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "unset"});
  const auto event = bus.emit(Ping{}, {.event_handler_timeout = 4s}).now();
  CHECK(number(result_of(event, "own").timeout()) == 9.0);
  CHECK(number(result_of(event, "none_of_its_own").timeout()) == -1.0);
  CHECK(number(result_of(event, "unset").timeout()) == 4.0);
}

TEST_CASE("the effective handler timeout is the smaller one", "[T-TMO-12]") {
  EventBus bus("TmoEffective", {.event_timeout = 12s});
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "default"});
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "longer", .handler_timeout = 0.12s});

  const auto unset = bus.emit(Ping{}).now();
  CHECK(number(result_of(unset, "default").timeout()) == 12.0);
  const auto short_handlers = bus.emit(Ping{}, {.event_timeout = 0.2s, .event_handler_timeout = 0.05s}).now();
  CHECK(number(result_of(short_handlers, "default").timeout()) == 0.05);
  CHECK(number(result_of(short_handlers, "longer").timeout()) == 0.12);
  const auto short_event = bus.emit(Ping{}, {.event_timeout = 0.08s, .event_handler_timeout = 0.2s}).now();
  CHECK(number(result_of(short_event, "default").timeout()) == 0.08);
  CHECK(number(result_of(short_event, "longer").timeout()) == 0.08);

  EventBus hasty("TmoEffectiveHasty", {.event_timeout = 0.01s});
  hasty.on<Ping>([](const Ping&) {});
  const auto unlimited = hasty.emit(Ping{}, {.event_timeout = 0s}).now();
  CHECK_FALSE(unlimited.event_results()[0].timeout().has_value());
}

TEST_CASE("a result names the registration's own limits beside the effective one", "[T-TMO-13]") {
  EventBus bus("TmoOwnLimits");
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "own", .handler_timeout = 9s, .handler_slow_timeout = 8s});
  bus.on<Ping>([](const Ping&) {}, {.handler_name = "unset"});
  const auto event = bus.emit(Ping{}, {.event_timeout = 3s}).now();
  CHECK(number(result_of(event, "own").timeout()) == 3.0);
  CHECK(number(result_of(event, "own").handler_timeout()) == 9.0);
  CHECK(number(result_of(event, "own").handler_slow_timeout()) == 8.0);
  CHECK(number(result_of(event, "unset").timeout()) == 3.0);
  CHECK_FALSE(result_of(event, "unset").handler_timeout().has_value());
  CHECK_FALSE(result_of(event, "unset").handler_slow_timeout().has_value());
}

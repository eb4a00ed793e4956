#include "event/names.hpp"

#include "support/catch.hpp"

#include <abxbus/error.hpp>
#include <abxbus/modes.hpp>

#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

using namespace abxbus::detail;
using namespace std::chrono_literals;
using abxbus::Seconds;

namespace {

std::string times(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

/// The message of the ValidationError, `|`, its field.
template <class F>
std::string rejection(F&& f) {
  try {
    f();
  } catch (const abxbus::ValidationError& e) {
    return std::string(e.what()) + "|" + e.field();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("identifiers", "[D-NAME-1]") {
  for (const std::string_view text :
       {"a", "Z", "ShopBus", "a1", "a_b", "a__", "ä", "größe", "名前", "名1_", "\U0001F600x"}) {
    INFO(text);
    CHECK(is_identifier(text));
  }
  for (const std::string_view text : {"", "_", "_x", "1a", "a b", "a-b", "a.b", "*", "a#", " a", "a\n", "@"}) {
    INFO(text);
    CHECK_FALSE(is_identifier(text));
  }
  CHECK_FALSE(is_identifier(std::string_view("a\0b", 3)));
}

TEST_CASE("what is not UTF-8 is no identifier", "[D-NAME-1]") {
  for (const std::string_view text : {"\x80", "a\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80" /* surrogate */,
                                      "\xF4\x90\x80\x80", "\xFF", "\xF0\x8F\xBF\xBF", "\xE4\xBA", "\xC3\x28"}) {
    CHECK_FALSE(is_identifier(text));
    CHECK_FALSE(count_code_points(text).has_value());
  }
  CHECK(count_code_points("") == 0U);
  CHECK(count_code_points("aä名\U0001F600") == 4U);
}

TEST_CASE("an event type is an identifier of at most 64 code points", "[D-EVT-5]") {
  CHECK(is_event_type(times("a", 64)));
  CHECK(is_event_type(times("ä", 64)));
  CHECK_FALSE(is_event_type(times("a", 65)));
  CHECK_FALSE(is_event_type(times("ä", 65)));
  for (const std::string_view text : {"", "_x", "1a", "a b", "a-b", "a.b", "*"}) {
    CHECK_FALSE(is_event_type(text));
    CHECK(rejection([&] { check_event_type(text); }) ==
          "event_type must be an identifier of at most 64 characters, got: " + std::string(text) + "|event_type");
  }
  CHECK_NOTHROW(check_event_type("OrderCreatedEvent"));
}

TEST_CASE("a bus name is an identifier", "[S-BUS-9]") {
  CHECK_NOTHROW(check_bus_name("ShopBus"));
  CHECK(rejection([] { check_bus_name("_Shop"); }) ==
        "EventBus name must be a unique identifier string, got: _Shop|name");
  CHECK(rejection([] { check_bus_name(""); }) == "EventBus name must be a unique identifier string, got: |name");
}

TEST_CASE("entries of an event path", "[D-EVT-11]") {
  for (const std::string_view text : {"A#1a2B", "_A#0000", "Größe_1#abcd"}) CHECK(is_bus_label(text));
  for (const std::string_view text :
       {"A", "A#1a2", "A#1a222", "A-b#1a22", "#1a22", "1A#1a22", "A#1a2_", "A#B#1a22", ""})
    CHECK_FALSE(is_bus_label(text));
}

TEST_CASE("the label of a bus", "[D-LBL-1]") {
  CHECK(bus_label("ShopBus", "0196a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b") == "ShopBus#4a5b");
}

TEST_CASE("label and display text of a handler", "[D-LBL-2]") {
  const std::string_view id = "25f82212-6139-5129-9bd8-65a21f1b16ab";
  CHECK(handler_label("on_order", id) == "on_order#16ab");
  CHECK(handler_label("anonymous", id) == "anonymous#16ab");
  CHECK(handler_label("short", "x1") == "short#x1");
  CHECK(handler_display("on_order", id, "") == "on_order()");
  CHECK(handler_display("on_order", id, "~/shop.cpp:88") == "on_order() @ ~/shop.cpp:88");
  CHECK(handler_display("anonymous", id, "") == "function#16ab()");
  CHECK(handler_display("anonymous", id, "~/shop.cpp:88") == "function#16ab() @ ~/shop.cpp:88");
}

TEST_CASE("the short label of an event", "[D-LBL-3]") {
  CHECK(event_label("OrderCreatedEvent", abxbus::Uuid::parse("0196a1b2-d000-7001-8001-00000000BEEF")) ==
        "OrderCreatedEvent#beef");
}

TEST_CASE("seconds in a message are the shortest decimal", "[T-CNV-2]") {
  CHECK(seconds_text(50ms) == "0.05");
  CHECK(seconds_text(5s) == "5");
  CHECK(seconds_text(1500ms) == "1.5");
  CHECK(seconds_text(Seconds(0)) == "0");
  CHECK(seconds_text(Seconds(-0.0)) == "0");
  CHECK(seconds_text(Seconds(0.1)) == "0.1");
  CHECK(seconds_text(Seconds(1.0 / 3)) == "0.3333333333333333");
  CHECK(seconds_text(1min) == "60");
  CHECK(seconds_text(100ns) == "0.0000001");
  CHECK(seconds_text(Seconds(1e20)) == "100000000000000000000");
  for (const double value :
       {0.05, 1e-300, 123456.789, std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()}) {
    const std::string text = seconds_text(Seconds(value));
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    CHECK(back == value);
    CHECK(text.find('e') == std::string::npos);
  }
}

TEST_CASE("fixed decimals in a message", "[T-CNV-2]") {
  CHECK(fixed_text(1.25, 1) == "1.2");
  CHECK(fixed_text(0.125, 2) == "0.12");
  CHECK(fixed_text(12.5, 2) == "12.50");
  CHECK(fixed_text(3, 0) == "3");
  CHECK(fixed_text(0, 1) == "0.0");
}

TEST_CASE("any chrono duration is an optional of seconds; unset and zero differ", "[T-CNV-1]") {
  const std::optional<Seconds> half = 500ms;
  const std::optional<Seconds> none;
  const std::optional<Seconds> zero = 0s;
  CHECK(half->count() == 0.5);
  CHECK(zero.has_value());
  CHECK(none != zero);
}

TEST_CASE("the texts of the modes", "[S-BUS-5][D-EVT-10]") {
  using namespace abxbus;
  CHECK(to_string(EventConcurrency::global_serial) == "global-serial");
  CHECK(to_string(EventConcurrency::bus_serial) == "bus-serial");
  CHECK(to_string(EventConcurrency::parallel) == "parallel");
  CHECK(to_string(EventHandlerConcurrency::serial) == "serial");
  CHECK(to_string(EventHandlerCompletion::first) == "first");
  CHECK(to_string(EventStatus::started) == "started");
  CHECK(to_string(EventResultStatus::error) == "error");
  for (const auto mode : {EventConcurrency::global_serial, EventConcurrency::bus_serial, EventConcurrency::parallel})
    CHECK(from_string<EventConcurrency>(to_string(mode)) == mode);
  for (const auto mode : {EventHandlerConcurrency::serial, EventHandlerConcurrency::parallel})
    CHECK(from_string<EventHandlerConcurrency>(to_string(mode)) == mode);
  for (const auto mode : {EventHandlerCompletion::all, EventHandlerCompletion::first})
    CHECK(from_string<EventHandlerCompletion>(to_string(mode)) == mode);
  for (const auto status : {EventStatus::pending, EventStatus::started, EventStatus::completed})
    CHECK(from_string<EventStatus>(to_string(status)) == status);
  for (const auto status :
       {EventResultStatus::pending, EventResultStatus::started, EventResultStatus::completed, EventResultStatus::error})
    CHECK(from_string<EventResultStatus>(to_string(status)) == status);
}

TEST_CASE("unknown mode texts are rejected by name", "[S-BUS-5][D-EVT-10]") {
  using namespace abxbus;
  CHECK(rejection([] { from_string<EventConcurrency>("bus_serial"); }) ==
        "event_concurrency must be \"global-serial\", \"bus-serial\", or \"parallel\", got: "
        "bus_serial|event_concurrency");
  CHECK(rejection([] { from_string<EventHandlerConcurrency>("Serial"); }) ==
        "event_handler_concurrency must be \"serial\" or \"parallel\", got: Serial|event_handler_concurrency");
  CHECK(rejection([] { from_string<EventHandlerCompletion>(""); }) ==
        "event_handler_completion must be \"all\" or \"first\", got: |event_handler_completion");
  CHECK(rejection([] { from_string<EventStatus>("error"); }).find("got: error|event_status") != std::string::npos);
  CHECK(rejection([] { from_string<EventResultStatus>("done"); }).find("got: done|status") != std::string::npos);
}

#include "event/text_forms.hpp"
#include "support/catch.hpp"

#include <abxbus/error.hpp>
#include <abxbus/timestamp.hpp>

#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

using abxbus::Timestamp;
using abxbus::ValidationError;
using namespace std::chrono_literals;

namespace {

std::string read(std::string_view text) {
  return Timestamp::parse(text).str();
}

}  // namespace

TEST_CASE("a timestamp is 30 characters whose order is that of time", "[D-TIM-1]") {
  const std::string text = Timestamp::now().str();
  REQUIRE(text.size() == 30);
  const std::string_view form = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
  for (std::size_t i = 0; i < form.size(); ++i) {
    INFO(text);
    CHECK((form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i]));
  }

  const std::vector<std::string> ordered = {"1991-01-01T00:00:00.000000000Z", "1999-12-31T23:59:59.999999999Z",
                                            "2000-01-01T00:00:00.000000000Z", "2024-02-29T12:00:00.000000000Z",
                                            "2024-02-29T12:00:00.000000001Z", "2262-04-11T23:47:16.854775808Z",
                                            "2499-12-31T23:59:59.999999999Z"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    CHECK(read(ordered[i]) == ordered[i]);
    if (i > 0) CHECK(Timestamp::parse(ordered[i - 1]) < Timestamp::parse(ordered[i]));
  }
}

TEST_CASE("the grammar of timestamps", "[D-TIM-2][D-TIM-3]") {
  CHECK(read("2025-01-02T03:04:05Z") == "2025-01-02T03:04:05.000000000Z");
  CHECK(read("2025-01-02T03:04:05.5Z") == "2025-01-02T03:04:05.500000000Z");
  CHECK(read("2025-01-02T03:04:05.678901Z") == "2025-01-02T03:04:05.678901000Z");
  CHECK(read("2025-01-02T03:04:05.000000001Z") == "2025-01-02T03:04:05.000000001Z");
  CHECK(read("2025-01-02T03:04:05.999999999Z") == "2025-01-02T03:04:05.999999999Z");
}

TEST_CASE("offsets are converted to UTC", "[D-TIM-3]") {
  CHECK(read("2025-01-02T03:04:05.5-05:30") == "2025-01-02T08:34:05.500000000Z");
  CHECK(read("2025-01-02T03:04:05+00:00") == "2025-01-02T03:04:05.000000000Z");
  CHECK(read("2025-01-01T00:30:00+01:00") == "2024-12-31T23:30:00.000000000Z");
  CHECK(read("2024-02-28T23:59:59-23:59") == "2024-02-29T23:58:59.000000000Z");
}

TEST_CASE("texts of another form are rejected", "[D-TIM-2][D-TIM-4]") {
  for (const std::string_view text : {"",
                                      "2025-01-02",
                                      "2025-01-02T03:04:05",
                                      "2025-01-02T03:04:05.1234567890Z",
                                      "2025-01-02T03:04:05+0200",
                                      "2025-01-02T03:04:05+02",
                                      "2025-01-02 03:04:05Z",
                                      "2025-01-02T03:04Z",
                                      "2025-01-02T03:04:05.Z",
                                      "2025-01-02T03:04:05.+01:00",
                                      "2025-01-02t03:04:05Z",
                                      "2025-01-02T03:04:05z",
                                      " 2025-01-02T03:04:05Z",
                                      "2025-01-02T03:04:05Z ",
                                      "2025-1-02T03:04:05Z",
                                      "25-01-02T03:04:05Z",
                                      "2025-01-02T03:04:05,5Z",
                                      "2025-01-02T3:04:05Z",
                                      "+2025-01-02T03:04:05Z",
                                      "2025-01-02T03:04:05ZZ",
                                      "2025-01-02T03:04:05Z+01:00",
                                      "2025-01-02T03:04:-5Z",
                                      "20250102T030405Z",
                                      "now"}) {
    INFO(text);
    CHECK_THROWS_AS(Timestamp::parse(text), ValidationError);
  }
}

TEST_CASE("values that no calendar has are rejected", "[D-TIM-5]") {
  for (const std::string_view text :
       {"2025-00-02T03:04:05Z", "2025-13-02T03:04:05Z", "2025-01-00T03:04:05Z", "2025-01-32T03:04:05Z",
        "2025-02-30T03:04:05Z", "2025-02-29T03:04:05Z", "2100-02-29T00:00:00Z", "2025-04-31T03:04:05Z",
        "2025-01-02T24:00:00Z", "2025-01-02T03:60:05Z", "2025-01-02T23:59:60Z", "2025-01-02T03:04:05+24:00",
        "2025-01-02T03:04:05-01:60"}) {
    INFO(text);
    CHECK_THROWS_AS(Timestamp::parse(text), ValidationError);
  }
  CHECK(read("2024-02-29T00:00:00Z") == "2024-02-29T00:00:00.000000000Z");
  CHECK(read("2000-02-29T00:00:00Z") == "2000-02-29T00:00:00.000000000Z");
}

TEST_CASE("the year in UTC is 1991 to 2499", "[D-TIM-6]") {
  CHECK_THROWS_AS(Timestamp::parse("1990-12-31T23:59:59Z"), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("1990-12-31T23:59:59.999999999Z"), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("2500-01-01T00:00:00Z"), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("1991-01-01T00:30:00+01:00"), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("2499-12-31T23:59:59-00:01"), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("0000-01-01T00:00:00Z"), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("9999-01-01T00:00:00Z"), ValidationError);
  CHECK(read("2500-01-01T00:30:00+01:00") == "2499-12-31T23:30:00.000000000Z");
  CHECK(read("1990-12-31T23:30:00-00:30") == "1991-01-01T00:00:00.000000000Z");
}

TEST_CASE("times of one thread increase strictly", "[D-TIM-7]") {
  Timestamp last = Timestamp::now();
  for (int i = 0; i < 100'000; ++i) {
    const Timestamp next = Timestamp::now();
    if (!(last < next)) FAIL(last.str() << " then " << next.str());
    last = next;
  }
  SUCCEED();
}

TEST_CASE("std::chrono times convert both ways", "[D-TIM-8]") {
  using std::chrono::sys_days;
  const Timestamp day = sys_days{std::chrono::year{2025} / 1 / 2};
  CHECK(day.str() == "2025-01-02T00:00:00.000000000Z");
  const std::chrono::sys_time<std::chrono::nanoseconds> precise = sys_days{std::chrono::year{2025} / 1 / 2} + 3h + 7ns;
  CHECK(Timestamp(precise).str() == "2025-01-02T03:00:00.000000007Z");
  CHECK(Timestamp(precise).time() == precise);
  CHECK(Timestamp(sys_days{std::chrono::year{2025} / 1 / 2} + 1ms).str() == "2025-01-02T00:00:00.001000000Z");
  const auto now = std::chrono::system_clock::now();
  CHECK(Timestamp(now).time() == now);

  // Coarse, floating, and finer than a nanosecond.
  CHECK(Timestamp(sys_days{std::chrono::year{2499} / 12 / 31}).str() == "2499-12-31T00:00:00.000000000Z");
  CHECK(Timestamp(std::chrono::sys_time<std::chrono::duration<double>>(std::chrono::duration<double>(1735786800.5)))
            .str() == "2025-01-02T03:00:00.500000000Z");
  using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
  using Tenths = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000'000>>;
  CHECK(Timestamp(std::chrono::sys_time<Tenths>(Tenths(7'000'000'000'000'000'019))).unix_ns() ==
        700'000'000'000'000'001U);
  CHECK_THROWS_AS(Timestamp(std::chrono::sys_time<Picoseconds>(Picoseconds(5))), ValidationError);
}

TEST_CASE("std::chrono times outside the years are rejected", "[D-TIM-6][D-TIM-8]") {
  using std::chrono::sys_days;
  using Double = std::chrono::duration<double>;
  CHECK_THROWS_AS(Timestamp(sys_days{std::chrono::year{1990} / 12 / 31}), ValidationError);
  CHECK_THROWS_AS(Timestamp(sys_days{std::chrono::year{2500} / 1 / 1}), ValidationError);
  CHECK_THROWS_AS(Timestamp(std::chrono::sys_time<Double>(Double(std::nan("")))), ValidationError);
  CHECK_THROWS_AS(Timestamp(std::chrono::sys_time<Double>(Double(1e300))), ValidationError);
  CHECK_THROWS_AS(Timestamp::parse("2300-01-01T00:00:00Z").time(), ValidationError);
  CHECK_NOTHROW(Timestamp::parse("2262-04-11T23:47:16.854775807Z").time());
}

TEST_CASE("timestamps compare with timestamps, texts and times", "[D-TIM-1][D-TIM-8]") {
  const Timestamp time = Timestamp::parse("2025-01-02T03:04:05Z");
  CHECK(time == "2025-01-02T03:04:05.000000000Z");
  CHECK(time < "2025-01-02T03:04:05.000000001Z");
  CHECK("2025-01-02T03:04:04.999999999Z" < time);
  CHECK(time != "2025-01-02T03:04:05Z");  // texts compare as texts
  CHECK(time == time.time());
  CHECK(time < time.time() + 1ns);
}

TEST_CASE("a clock reading and a timestamp are the same number", "[D-TIM-1]") {
  using namespace abxbus::detail;
  for (const std::string_view text : {"1991-01-01T00:00:00.000000000Z", "2499-12-31T23:59:59.999999999Z"})
    CHECK(to_timestamp(to_ns(Timestamp::parse(text))) == text);
  CHECK(to_timestamp(1'735'786'800'000'000'007) == "2025-01-02T03:00:00.000000007Z");
}

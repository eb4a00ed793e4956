#include "catch.hpp"

#include <abxbus/error.hpp>
#include <abxbus/json.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>

// JSON text: parse, dump, equality.

namespace {

namespace json = abxbus::json;

std::string again(std::string_view text) {
  return json::dump(json::parse(text));
}

bool fails(std::string_view text) {
  try {
    json::parse(text);
    return false;
  } catch (const abxbus::ValidationError&) {
    return true;
  }
}

bool equal(std::string_view left, std::string_view right) {
  const json::value a = json::parse(left);
  const json::value b = json::parse(right);
  return json::deep_equal(a, b) && json::deep_equal(b, a);
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace

TEST_CASE("numbers keep their kind", "[D-JSON-1]") {
  CHECK(again("3") == "3");
  CHECK(again("3.0") == "3.0");
  CHECK(again("18446744073709551615") == "18446744073709551615");
  CHECK(again("-9223372036854775808") == "-9223372036854775808");
  CHECK(json::parse("9223372036854775807").is_int64());
  CHECK(json::parse("9223372036854775808").is_uint64());
  CHECK(json::parse("18446744073709551616").is_double());
  CHECK(json::parse("-9223372036854775809").is_double());
  CHECK(again("[null,true,false,\"x\",{}]") == "[null,true,false,\"x\",{}]");
}

TEST_CASE("objects keep the order of their keys", "[D-JSON-2]") {
  const std::string text =
      R"({"z":1,"y":2,"x":3,"w":4,"v":5,"u":6,"t":7,"s":8,"r":9,"q":10,"p":11,"o":12,"n":13,"m":14,"l":15,"k":16,"j":17,)"
      R"("i":18,"h":19,"g":20,"f":21})";
  CHECK(again(text) == text);
}

TEST_CASE("the last of equal keys wins", "[D-JSON-4]") {
  const json::value value = json::parse(R"({"a":1,"b":2,"a":[3]})");
  CHECK(value.as_object().size() == 2);
  CHECK(json::dump(value.at("a")) == "[3]");
}

TEST_CASE("malformed text is rejected", "[D-JSON-4]") {
  for (const char* text :
       {"",    " ",   "{",    "[1,]",   "{\"a\":1,}", "{a:1}",   "'a'", "01",       "1.",      ".5",       "+1",
        "nul", "1 2", "[1]x", "\"\t\"", "\"a",        "// c\n1", "NaN", "Infinity", "\"\\x\"", "\"\\u12\""}) {
    INFO(text);
    CHECK(fails(text));
  }
  CHECK(fails("\"\xFF\""));
  CHECK(fails("\"\xC0\x80\""));
  CHECK(fails("\"\xED\xA0\x80\""));
  CHECK(fails("\"\\ud800\""));
  CHECK(fails("\"\\udc00\""));
  CHECK(fails("\"\\ud800x\""));
  CHECK(fails("1e400"));
  CHECK(fails("-1e400"));
  CHECK(json::parse("1e-400").get_double() == 0.0);
  CHECK(json::parse("\"\\ud83d\\ude00\"") == "\xF0\x9F\x98\x80");
  CHECK_THROWS_WITH(json::parse("[1,]"), abxbus::test::contains("invalid JSON at byte 3"));
}

TEST_CASE("nesting is limited", "[D-JSON-4]") {
  CHECK(again(nested(64)) == nested(64));
  CHECK(fails(nested(65)));
  CHECK(json::dump(json::parse(nested(200), 200)) == nested(200));
}

TEST_CASE("doubles use the shortest spelling and stay doubles", "[D-JSON-6]") {
  CHECK(json::dump(0.1) == "0.1");
  CHECK(json::dump(60.0) == "60.0");
  CHECK(json::dump(-0.0) == "-0.0");
  CHECK(json::dump(1e21) == "1.0e+21");
  CHECK(json::dump(1.5e300) == "1.5e+300");
  CHECK(json::dump(5e-324) == "5e-324");
  CHECK(json::dump(9007199254740993.0) == "9007199254740992.0");
  CHECK(json::dump(0.30000000000000004) == "0.30000000000000004");
  CHECK(json::parse(json::dump(1e21)).is_double());
}

TEST_CASE("every double reads back to the same bits", "[D-JSON-6]") {
  std::mt19937_64 random(20250102);
  std::uniform_int_distribution<std::uint64_t> bits;
  int checked = 0;
  int wrong = 0;
  while (checked < 50'000) {
    const std::uint64_t pattern = bits(random);
    double number;
    std::memcpy(&number, &pattern, sizeof number);
    if (!std::isfinite(number)) continue;
    ++checked;
    const double back = json::parse(json::dump(number)).get_double();
    if (std::memcmp(&back, &number, sizeof number) != 0) ++wrong;
  }
  CHECK(wrong == 0);
  // Spellings that a parser without exact rounding gets wrong by a unit.
  CHECK(json::parse("8.41e21").get_double() == 8.41e21);
  CHECK(json::parse("9007199254740993.0").get_double() == 9007199254740992.0);
  CHECK(json::parse("2.2250738585072011e-308").get_double() == 2.2250738585072011e-308);
  CHECK(json::parse("0.1000000000000000055511151231257827021181583404541015625").get_double() == 0.1);
}

TEST_CASE("text is escaped where JSON needs it", "[D-JSON-6]") {
  CHECK(again(R"("\u0001\b\f\n\r\t\"\\\/\u00e9")") == "\"\\u0001\\b\\f\\n\\r\\t\\\"\\\\/\xC3\xA9\"");
  CHECK(again("\"\x7F\"") == "\"\x7F\"");
  CHECK(again(R"({"a\n":"\u0000"})") == R"({"a\n":"\u0000"})");
}

TEST_CASE("what is no JSON is not dumped", "[D-JSON-5]") {
  CHECK_THROWS_AS(json::dump(std::numeric_limits<double>::quiet_NaN()), abxbus::ValidationError);
  CHECK_THROWS_AS(json::dump(json::array{1, -std::numeric_limits<double>::infinity()}), abxbus::ValidationError);
  CHECK_THROWS_AS(json::dump("\xFF"), abxbus::ValidationError);
  CHECK_THROWS_AS(json::dump(json::object{{"\xF5\x80\x80\x80", 1}}), abxbus::ValidationError);
  for (const char* text : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xE2\x82", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "12345678\xC3"}) {
    CHECK_THROWS_AS(json::dump(text), abxbus::ValidationError);
  }
  for (const char* text : {"\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x90\x80\x80",
                           "\xF4\x8F\xBF\xBF", "1234567\xC3\xA9 tail of it"}) {
    CHECK(json::parse(json::dump(text)) == text);
  }
}

TEST_CASE("indented text", "[D-JSON-6]") {
  const json::value value = json::parse(R"({"a":[1,{}],"b":{},"c":[]})");
  CHECK(json::dump(value, 2) == "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {},\n  \"c\": []\n}");
  CHECK(json::dump(value.as_object(), 2) == json::dump(value, 2));
}

TEST_CASE("equality goes by value", "[D-JSON-3]") {
  CHECK(equal("60", "60.0"));
  CHECK(equal(R"({"a":1,"b":[11.0]})", R"({"b":[11],"a":1.0})"));
  CHECK(equal("18446744073709551615", "18446744073709551615"));
  CHECK(!equal("1", "true"));
  CHECK(!equal("0", "false"));
  CHECK(!equal("0", "null"));
  CHECK(!equal("\"1\"", "1"));
  CHECK(!equal("[1,2]", "[2,1]"));
  CHECK(!equal("[1]", "[1,1]"));
  CHECK(!equal(R"({"a":1})", R"({"a":1,"b":null})"));
  CHECK(!equal(R"({"a":1})", R"({"b":1})"));
  CHECK(!equal("9007199254740993", "9007199254740992.0"));
  CHECK(!equal("9223372036854775807", "9223372036854775808.0"));
  CHECK(equal("9223372036854775808", "9223372036854775808.0"));
  CHECK(!equal("18446744073709551615", "18446744073709551616.0"));
  CHECK(!equal("-1", "18446744073709551615"));
  CHECK(!equal("3", "3.5"));
  CHECK(!equal("-3", "-3.5"));
}

#include "catch.hpp"

#include <abxbus/describe.hpp>
#include <abxbus/error.hpp>
#include <abxbus/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

// The table of types, row by row, both ways.

namespace {

namespace json = abxbus::json;
using namespace std::chrono_literals;

template <class T>
std::string text_of(const T& value) {
  return json::dump(json::encode(value));
}

template <class T>
T from(std::string_view text) {
  return json::decode<T>(json::parse(text));
}

/// Writes `value` as `text` and reads it back from there.
template <class T>
bool both_ways(const T& value, std::string_view text) {
  return text_of(value) == text && from<T>(text) == value;
}

template <class T>
bool rejects(std::string_view text) {
  const json::value value = json::parse(text);
  try {
    json::decode<T>(value);
    return false;
  } catch (const abxbus::ValidationError&) {
    return true;
  }
}

enum class Colour { red, green };
ABXBUS_DESCRIBE_ENUM(Colour, red, green)

struct Money {
  std::int64_t cents = 0;
  std::string currency;
  bool operator==(const Money&) const = default;
};

struct Invoice {
  std::string id;
  Money total;
  std::optional<std::string> memo;
  std::vector<Money> lines;
  std::map<std::string, double> rates;
  bool operator==(const Invoice&) const = default;
};

struct Empty {
  bool operator==(const Empty&) const = default;
};

struct Arrays {
  int numbers[3];
  std::string grid[2][1];
};

class Account {
 public:
  Account() = default;
  explicit Account(std::string owner) : owner_name(std::move(owner)) {}
  std::string owner_name = "nobody";
  int balance = 5;
};
ABXBUS_DESCRIBE(Account, owner_name, balance)
ABXBUS_DESCRIBE_DEFAULTS(Account, balance)

struct Settings {
  int retries = 3;
  std::optional<int> limit = 9;
  std::string mode;
  static constexpr std::array<std::string_view, 1> json_defaults{"retries"};
};

struct Node {
  std::string name;
  std::unique_ptr<Node> next;
  std::vector<Node> children;
};

}  // namespace

TEST_CASE("bool", "[D-TYP-1]") {
  CHECK(both_ways(true, "true"));
  CHECK(both_ways(false, "false"));
  CHECK(rejects<bool>("1"));
  CHECK(rejects<bool>("\"true\""));
  CHECK(rejects<bool>("null"));
}

TEST_CASE("integers", "[D-TYP-1]") {
  CHECK(both_ways(std::int8_t{-128}, "-128"));
  CHECK(both_ways(std::uint8_t{255}, "255"));
  CHECK(both_ways(std::numeric_limits<std::int64_t>::min(), "-9223372036854775808"));
  CHECK(both_ways(std::numeric_limits<std::uint64_t>::max(), "18446744073709551615"));
  CHECK(json::encode(std::uint64_t{7}).is_int64());
  CHECK(from<int>("3.0") == 3);
  CHECK(from<std::uint64_t>("1e3") == 1000);
  CHECK(from<std::int64_t>("-9223372036854775808.0") == std::numeric_limits<std::int64_t>::min());
  CHECK(rejects<int>("3.5"));
  CHECK(rejects<int>("\"3\""));
  CHECK(rejects<int>("true"));
  CHECK(rejects<std::int8_t>("128"));
  CHECK(rejects<std::int8_t>("-129"));
  CHECK(rejects<std::uint8_t>("256"));
  CHECK(rejects<std::uint8_t>("-1"));
  CHECK(rejects<std::uint64_t>("-1.0"));
  CHECK(rejects<std::int64_t>("9223372036854775808"));
  CHECK(rejects<std::int64_t>("9223372036854775808.0"));
  CHECK(rejects<std::uint64_t>("18446744073709551616"));
  CHECK(rejects<std::uint64_t>("1e300"));
}

TEST_CASE("floating point", "[D-TYP-1]") {
  CHECK(both_ways(1.5, "1.5"));
  CHECK(both_ways(0.1F, text_of(0.1F)));
  CHECK(from<double>("3") == 3.0);
  CHECK(from<double>("18446744073709551615") == 18446744073709551615.0);
  CHECK(from<float>("16777216") == 16777216.0F);
  CHECK(rejects<float>("1e39"));
  CHECK(rejects<float>("-1e39"));
  CHECK(rejects<double>("\"1\""));
  CHECK(rejects<double>("null"));
}

TEST_CASE("text", "[D-TYP-1]") {
  CHECK(both_ways(std::string("a \"b\" \n\xC3\xA9"), "\"a \\\"b\\\" \\n\xC3\xA9\""));
  CHECK(both_ways(std::string("a\0b", 3), "\"a\\u0000b\""));
  CHECK(text_of(std::string_view("view")) == "\"view\"");
  CHECK(text_of(static_cast<const char*>("pointer")) == "\"pointer\"");
  CHECK(json::encode("literal") == "literal");
  CHECK(rejects<std::string>("3"));
  CHECK(rejects<std::string>("null"));
}

TEST_CASE("null", "[D-TYP-1]") {
  CHECK(both_ways(nullptr, "null"));
  CHECK(both_ways(std::monostate(), "null"));
  CHECK(rejects<std::nullptr_t>("0"));
  CHECK(rejects<std::monostate>("false"));
}

TEST_CASE("optional and smart pointers", "[D-TYP-1]") {
  CHECK(both_ways(std::optional<int>(4), "4"));
  CHECK(both_ways(std::optional<int>(), "null"));
  CHECK(rejects<std::optional<int>>("\"4\""));
  CHECK(text_of(std::make_unique<int>(4)) == "4");
  CHECK(text_of(std::unique_ptr<int>()) == "null");
  CHECK(text_of(std::make_shared<const std::string>("s")) == "\"s\"");
  CHECK(*from<std::unique_ptr<int>>("4") == 4);
  CHECK(from<std::unique_ptr<int>>("null") == nullptr);
  CHECK(*from<std::shared_ptr<const std::string>>("\"s\"") == "s");
  CHECK(from<std::shared_ptr<int>>("null") == nullptr);
}

TEST_CASE("sequences", "[D-TYP-1]") {
  CHECK(both_ways(std::vector<int>{1, 2}, "[1,2]"));
  CHECK(both_ways(std::vector<bool>{true, false}, "[true,false]"));
  CHECK(both_ways(std::deque<std::string>{"a"}, "[\"a\"]"));
  CHECK(both_ways(std::list<double>{0.5}, "[0.5]"));
  CHECK(both_ways(std::vector<std::vector<int>>{{}, {1}}, "[[],[1]]"));
  CHECK(rejects<std::vector<int>>("{}"));
  CHECK(rejects<std::vector<int>>("[1,\"2\"]"));
  CHECK(rejects<std::vector<int>>("null"));
}

TEST_CASE("sets", "[D-TYP-1]") {
  CHECK(both_ways(std::set<int>{2, 1}, "[1,2]"));
  CHECK(from<std::set<int>>("[2,1,2]") == std::set<int>{1, 2});
  CHECK(from<std::unordered_set<std::string>>("[\"a\",\"a\"]") == std::unordered_set<std::string>{"a"});
  CHECK(text_of(std::unordered_set<int>{3}) == "[3]");
}

TEST_CASE("fixed arrays", "[D-TYP-1]") {
  CHECK(both_ways(std::array<int, 2>{1, 2}, "[1,2]"));
  CHECK(both_ways(std::array<int, 0>{}, "[]"));
  CHECK(rejects<std::array<int, 2>>("[1]"));
  CHECK(rejects<std::array<int, 2>>("[1,2,3]"));
  const Arrays arrays{{1, 2, 3}, {{"a"}, {"b"}}};
  CHECK(text_of(arrays) == R"({"numbers":[1,2,3],"grid":[["a"],["b"]]})");
  const auto back = from<Arrays>(R"({"numbers":[4,5,6],"grid":[["c"],["d"]]})");
  CHECK(back.numbers[2] == 6);
  CHECK(back.grid[1][0] == "d");
}

TEST_CASE("tuples and pairs", "[D-TYP-1]") {
  CHECK(both_ways(std::tuple<int, std::string, bool>(1, "a", true), "[1,\"a\",true]"));
  CHECK(both_ways(std::pair<std::string, int>("a", 1), "[\"a\",1]"));
  CHECK(both_ways(std::tuple<>(), "[]"));
  CHECK(rejects<std::pair<int, int>>("[1]"));
  CHECK(rejects<std::pair<int, int>>("[1,2,3]"));
  CHECK(rejects<std::pair<int, int>>("[1,\"2\"]"));
}

TEST_CASE("maps", "[D-TYP-1]") {
  CHECK(both_ways(std::map<std::string, int>{{"b", 2}, {"a", 1}}, R"({"a":1,"b":2})"));
  CHECK(both_ways(std::unordered_map<std::string, bool>{{"k", true}}, R"({"k":true})"));
  CHECK(both_ways(std::map<int, std::string>{{-1, "x"}, {10, "y"}}, R"({"-1":"x","10":"y"})"));
  CHECK(both_ways(std::map<std::uint64_t, int>{{18446744073709551615U, 1}}, R"({"18446744073709551615":1})"));
  CHECK(rejects<std::map<int, int>>(R"({"one":1})"));
  CHECK(rejects<std::map<int, int>>(R"({"1x":1})"));
  CHECK(rejects<std::map<int, int>>(R"({"":1})"));
  CHECK(rejects<std::map<std::uint8_t, int>>(R"({"256":1})"));
  CHECK(rejects<std::map<std::uint8_t, int>>(R"({"-1":1})"));
  CHECK(rejects<std::map<std::string, int>>(R"({"a":null})"));
  CHECK(rejects<std::map<std::string, int>>("[]"));
}

TEST_CASE("structs", "[D-TYP-1][D-TEV-2]") {
  const Invoice invoice{"i1", {1999, "EUR"}, std::nullopt, {{1, "EUR"}, {2, "USD"}}, {{"EUR", 1.0}}};
  CHECK(both_ways(invoice, R"({"id":"i1","total":{"cents":1999,"currency":"EUR"},"memo":null,)"
                           R"("lines":[{"cents":1,"currency":"EUR"},{"cents":2,"currency":"USD"}],)"
                           R"("rates":{"EUR":1.0}})"));
  CHECK(both_ways(Empty{}, "{}"));
  CHECK(from<Money>(R"({"unknown":[1],"currency":"EUR","cents":2})") == Money{2, "EUR"});
  CHECK(rejects<Money>(R"({"cents":2})"));
  CHECK(rejects<Money>("[]"));
  CHECK(rejects<Empty>("null"));
}

TEST_CASE("a missing optional member is empty", "[D-TYP-1][D-TYP-3]") {
  const auto settings = from<Settings>(R"({"mode":"fast"})");
  CHECK(settings.limit == std::nullopt);
  CHECK(from<Settings>(R"({"mode":"fast","limit":null})").limit == std::nullopt);
}

TEST_CASE("a missing member with a declared default keeps it, null does not", "[D-TYP-3]") {
  CHECK(from<Settings>(R"({"mode":"fast"})").retries == 3);
  CHECK(from<Settings>(R"({"mode":"fast","retries":4})").retries == 4);
  CHECK(rejects<Settings>(R"({"mode":"fast","retries":null})"));
  CHECK(rejects<Settings>(R"({"retries":4})"));
  CHECK(from<Account>(R"({"owner_name":"ann"})").balance == 5);
  CHECK(rejects<Account>(R"({"balance":1})"));
  CHECK(text_of(Account("bob")) == R"({"owner_name":"bob","balance":5})");
}

TEST_CASE("recursive structs", "[D-TYP-1]") {
  const auto node =
      from<Node>(R"({"name":"a","next":{"name":"b","children":[]},"children":[{"name":"c","children":[]}]})");
  CHECK(node.next->name == "b");
  CHECK(node.next->next == nullptr);
  CHECK(node.children[0].name == "c");
  CHECK(text_of(node.children[0]) == R"({"name":"c","next":null,"children":[]})");
}

TEST_CASE("enums with declared names", "[D-TYP-1]") {
  CHECK(both_ways(Colour::green, "\"green\""));
  CHECK(rejects<Colour>("\"blue\""));
  CHECK(rejects<Colour>("1"));
  CHECK_THROWS_AS(json::encode(static_cast<Colour>(7)), abxbus::ValidationError);
}

TEST_CASE("variants take the first alternative that decodes", "[D-TYP-1][D-TYP-2]") {
  using Variant = std::variant<int, double, std::string, Money, std::monostate>;
  CHECK(both_ways(Variant(3), "3"));
  CHECK(both_ways(Variant(3.5), "3.5"));
  CHECK(from<Variant>("3.0") == Variant(3));
  CHECK(both_ways(Variant("x"), "\"x\""));
  CHECK(both_ways(Variant(Money{1, "EUR"}), R"({"cents":1,"currency":"EUR"})"));
  CHECK(both_ways(Variant(std::monostate()), "null"));
  CHECK(rejects<Variant>("true"));
  CHECK(rejects<Variant>(R"({"cents":1})"));
  using Flat = std::optional<std::variant<int, std::string>>;
  CHECK(both_ways(Flat(), "null"));
  CHECK(both_ways(Flat("x"), "\"x\""));
}

TEST_CASE("system times", "[D-TYP-1][D-TIM-8]") {
  using std::chrono::sys_time;
  const sys_time<std::chrono::nanoseconds> fine(1735787045678901002ns);
  CHECK(both_ways(fine, "\"2025-01-02T03:04:05.678901002Z\""));
  const sys_time<std::chrono::seconds> coarse(1735787045s);
  CHECK(both_ways(coarse, "\"2025-01-02T03:04:05.000000000Z\""));
  CHECK(from<sys_time<std::chrono::seconds>>("\"2025-01-02T05:04:05.9+02:00\"") == coarse);
  CHECK(both_ways(sys_time<std::chrono::seconds>(16725225599s), "\"2499-12-31T23:59:59.000000000Z\""));
  CHECK(from<sys_time<std::chrono::duration<double>>>("\"2025-01-02T03:04:05.5Z\"").time_since_epoch().count() ==
        1735787045.5);
  CHECK(rejects<sys_time<std::chrono::nanoseconds>>("\"2499-12-31T23:59:59Z\""));
  CHECK(rejects<sys_time<std::chrono::seconds>>("\"2025-01-02\""));
  CHECK(rejects<sys_time<std::chrono::seconds>>("1735787045"));
  CHECK_THROWS_AS(json::encode(sys_time<std::chrono::seconds>(0s)), abxbus::ValidationError);
  CHECK_THROWS_AS(json::encode(sys_time<std::chrono::hours>(std::chrono::hours(std::numeric_limits<long>::max()))),
                  abxbus::ValidationError);
}

TEST_CASE("durations are seconds", "[D-TYP-1]") {
  CHECK(both_ways(1500ms, "1.5"));
  CHECK(both_ways(std::chrono::duration<double>(0.25), "0.25"));
  CHECK(both_ways(std::chrono::hours(2), "7200.0"));
  CHECK(from<std::chrono::milliseconds>("2") == 2s);
  CHECK(from<std::chrono::milliseconds>("0.0011") == 1ms);
  CHECK(from<std::chrono::nanoseconds>("0.1") == 100ms);
  CHECK(from<std::chrono::milliseconds>("-1.5") == -1500ms);
  CHECK(rejects<std::chrono::nanoseconds>("1e12"));
  CHECK(rejects<std::chrono::milliseconds>("\"PT1S\""));
}

TEST_CASE("raw JSON", "[D-TYP-1]") {
  const json::value anything = json::parse(R"([1,{"a":null}])");
  CHECK(both_ways(anything, R"([1,{"a":null}])"));
  CHECK(from<json::object>(R"({"a":1})").at("a") == 1);
  CHECK(rejects<json::object>("[]"));
  CHECK(from<json::array>("[1]").size() == 1);
  CHECK(rejects<json::array>("{}"));
  CHECK(json::dump(from<json::ref>("[2]").get()) == "[2]");
  CHECK(text_of(json::ref(anything)) == R"([1,{"a":null}])");
}

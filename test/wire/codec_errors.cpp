#include "catch.hpp"

#include <abxbus/describe.hpp>
#include <abxbus/error.hpp>
#include <abxbus/json.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

// What a mismatch says: path and expected type; and that nothing half-made remains.

namespace {

namespace json = abxbus::json;
namespace codec = abxbus::detail::codec;

struct Line {
  int amount = 0;
  double price = 0;
};

struct Order {
  std::string id;
  std::vector<Line> lines;
  std::map<std::string, std::optional<Line>> named;
};

enum class Size { small, large };
ABXBUS_DESCRIBE_ENUM(Size, small, large)

/// Text of the error, and its field after a bar.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const abxbus::ValidationError& error) {
    return std::string(error.what()) + "|" + error.field();
  }
  return "none";
}

template <class T>
std::string decoding(const char* text) {
  const json::value value = json::parse(text);
  return error_of([&] { json::decode<T>(value); });
}

template <class T>
std::string encoding(const T& value) {
  return error_of([&] { json::encode(value); });
}

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  ~Counted() { --alive; }
  int number = 0;
  static int alive;
};
int Counted::alive = 0;
ABXBUS_DESCRIBE(Counted, number)

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double endless = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a mismatch names path and expected type", "[D-TYP-1]") {
  CHECK(decoding<int>("\"3\"") == "$ expected integer|$");
  CHECK(decoding<std::int8_t>("300") == "$ expected integer from -128 to 127|$");
  CHECK(decoding<std::vector<int>>("[1,2.5]") == "$[1] expected integer|$[1]");
  CHECK(decoding<Order>("[]") == "$ expected object|$");
  CHECK(decoding<Order>(R"({"id":1})") == "$.id expected string|$.id");
  CHECK(decoding<Order>(R"({"id":"x","lines":[{"amount":1,"price":2},{"amount":true,"price":2}],"named":{}})") ==
        "$.lines[1].amount expected integer|$.lines[1].amount");
  CHECK(decoding<Order>(R"({"id":"x","lines":[],"named":{"k":{"amount":1,"price":"2"}}})") ==
        "$.named.k.price expected number|$.named.k.price");
  CHECK(decoding<std::tuple<int, bool>>("[1,2]") == "$[1] expected boolean|$[1]");
  CHECK(decoding<std::tuple<int, bool>>("[1]") == "$ expected array of length 2|$");
  CHECK(decoding<std::map<int, int>>(R"({"1":2,"x":3})") == "$.x expected decimal integer as member name|$.x");
  CHECK(decoding<Size>("\"medium\"") == "$ expected one of small, large|$");
  CHECK(decoding<std::unique_ptr<bool>>("1") == "$ expected boolean|$");
}

TEST_CASE("a missing member is named with its type", "[D-TYP-1][D-TYP-3]") {
  CHECK(decoding<Line>(R"({"price":1})") == "$.amount is required, expected integer|$.amount");
  CHECK(decoding<Order>(R"({"id":"x","lines":[{"amount":1}]})") ==
        "$.lines[0].price is required, expected number|$.lines[0].price");
  CHECK(decoding<Order>(R"({"id":"x"})") == "$.lines is required, expected array|$.lines");
}

TEST_CASE("a variant that does not fit tells all it would take, or where the best one failed", "[D-TYP-1]") {
  using Simple = std::variant<int, std::string, std::int64_t>;
  CHECK(decoding<Simple>("true") == "$ expected integer or string|$");
  using Complex = std::variant<int, Line>;
  CHECK(decoding<Complex>(R"({"amount":1,"price":[]})") == "$.price expected number|$.price");
  CHECK(decoding<std::vector<Complex>>("[1,null]") == "$[1] expected integer or object|$[1]");
}

TEST_CASE("what has no JSON form is not written", "[D-JSON-5]") {
  CHECK(encoding(not_a_number) == "$ expected finite number|$");
  CHECK(encoding(-endless) == "$ expected finite number|$");
  CHECK(encoding(std::numeric_limits<float>::infinity()) == "$ expected finite number|$");
  CHECK(encoding(Order{"x", {{1, 1.0}, {2, not_a_number}}, {}}) ==
        "$.lines[1].price expected finite number|$.lines[1].price");
  CHECK(encoding(Order{"x", {}, {{"k", Line{1, endless}}}}) ==
        "$.named.k.price expected finite number|$.named.k.price");
  CHECK(encoding(Order{"\xFF", {}, {}}) == "$.id expected valid UTF-8 text|$.id");
  CHECK(encoding(std::map<std::string, int>{{"\xC0\x80", 1}}) == "$ expected valid UTF-8 text as member name|$");
  CHECK(encoding(std::vector<std::string>{"fine", "\xED\xA0\x80"}) == "$[1] expected valid UTF-8 text|$[1]");
  CHECK(encoding(static_cast<const char*>(nullptr)) == "$ expected string|$");
  CHECK(encoding(json::value(not_a_number)) == "$ expected finite number|$");
  CHECK(encoding(json::value{1, json::object{{"a", "\xFF"}}}) == "$[1].a expected valid UTF-8 text|$[1].a");
}

TEST_CASE("a circle of objects is an error, not a full stack", "[D-JSON-5]") {
  struct Ring {
    std::shared_ptr<Ring> next;
  };
  auto ring = std::make_shared<Ring>();
  ring->next = ring;
  CHECK_THROWS_AS(json::encode(ring), abxbus::ValidationError);
  ring->next = nullptr;
}

TEST_CASE("the erased entry points make the object whole or not at all", "[D-TEV-2][D-TYP-1]") {
  const codec::decode_fn decode = &codec::decode_as<Counted>;
  const codec::encode_fn encode = &codec::encode_as<Counted>;
  alignas(Counted) unsigned char storage[sizeof(Counted)];

  const json::value good = json::parse(R"({"number":5})");
  decode(good, storage);
  auto* object = std::launder(reinterpret_cast<Counted*>(storage));
  CHECK(object->number == 5);
  codec::Writer writer;
  encode(object, writer);
  CHECK(json::dump(writer.take()) == R"({"number":5})");
  object->~Counted();
  CHECK(Counted::alive == 0);

  const json::value bad = json::parse(R"({"number":"5"})");
  CHECK_THROWS_AS(decode(bad, storage), abxbus::ValidationError);
  CHECK(Counted::alive == 0);
  CHECK(codec::decodes<Counted>(good));
  CHECK(!codec::decodes<Counted>(bad));
}

TEST_CASE("the members of a struct can be written flat into an open object", "[D-TEV-2]") {
  codec::Writer writer;
  writer.begin_object(4);
  writer.key("event_type");
  writer.string("Line");
  writer.splice();
  codec::write(writer, Line{1, 2.5});
  writer.key("event_results");
  writer.begin_object(0);
  writer.end_object();
  writer.end_object();
  CHECK(json::dump(writer.take()) == R"({"event_type":"Line","amount":1,"price":2.5,"event_results":{}})");

  codec::Writer failing;
  failing.begin_object(1);
  failing.splice();
  CHECK(error_of([&] { codec::write(failing, Line{1, not_a_number}); }) == "$.price expected finite number|$.price");
}

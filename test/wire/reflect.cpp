#include "catch.hpp"

#include <abxbus/describe.hpp>

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Members of structs, and names of types, found by the compiler: D-TEV-1.

namespace {

using namespace abxbus::detail;

struct Nothing {};

struct Single {
  std::string only;
};

struct Point {
  int x;
  int y;
};

struct Nested {
  Nothing nothing;
  Point point;
  std::vector<Point> points;
  int last;
};

struct Arrays {
  int three[3];
  Point grid[2][2];
  char name[16];
  std::string words[2];
  const char* text;
};

struct Heavy {
  std::any any;
  std::function<void()> function;
  std::mutex mutex;
  std::unique_ptr<int> pointer;
  std::optional<Single> optional;
  std::map<std::string, Point> map;
};

struct Initialised {
  int a = 3;
  std::string b = "text";
  const int c = 4;
};

#define ABXBUS_TEST_TEN(prefix) \
  int prefix##0, prefix##1, prefix##2, prefix##3, prefix##4, prefix##5, prefix##6, prefix##7, prefix##8, prefix##9;

struct SixtyFour {
  ABXBUS_TEST_TEN(a)
  ABXBUS_TEST_TEN(b)
  ABXBUS_TEST_TEN(c) ABXBUS_TEST_TEN(d) ABXBUS_TEST_TEN(e) ABXBUS_TEST_TEN(f) int g0, g1, g2, last;
};

struct SixtyFive {
  ABXBUS_TEST_TEN(a)
  ABXBUS_TEST_TEN(b)
  ABXBUS_TEST_TEN(c) ABXBUS_TEST_TEN(d) ABXBUS_TEST_TEN(e) ABXBUS_TEST_TEN(f) int g0, g1, g2, g3, last;
};

class Private {
 public:
  int shown = 0;
  int sum() const { return shown + hidden_; }

 private:
  int hidden_ = 0;
};

struct Constructed {
  explicit Constructed(int number) : value(number) {}
  int value;
};

struct Base {
  int inherited;
};
struct Derived : Base {
  int own;
};
struct DerivedFromNothing : Nothing {
  int own;
};

struct Virtual {
  virtual ~Virtual() = default;
  int value = 0;
};

struct WithReference {
  int& target;
  int value;
};

struct WithoutDefault {
  int first;
  Constructed second;
};

union Either {
  int number;
  float real;
};

struct Described {
  Described() : first(7), second("seven") {}
  int first;
  std::string second;
  double skipped = 0;
};
ABXBUS_DESCRIBE(Described, first, second)

ABXBUS_DESCRIBE(Derived, inherited, own);

struct DescribedEmpty {
  DescribedEmpty() {}
};
ABXBUS_DESCRIBE(DescribedEmpty)

struct SixtyFourDescribed {
  SixtyFourDescribed() = default;
  ABXBUS_TEST_TEN(a)
  ABXBUS_TEST_TEN(b)
  ABXBUS_TEST_TEN(c) ABXBUS_TEST_TEN(d) ABXBUS_TEST_TEN(e) ABXBUS_TEST_TEN(f) int g0, g1, g2, last;
};
ABXBUS_DESCRIBE(SixtyFourDescribed, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0,
                c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, e0, e1, e2, e3, e4, e5, e6,
                e7, e8, e9, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, g0, g1, g2, last)

struct Defaults {
  int a = 1;
  int b = 2;
  static constexpr std::string_view json_defaults[] = {"b"};
};

struct DefaultsByMacro {
  int a = 1;
  int b = 2;
};
ABXBUS_DESCRIBE_DEFAULTS(DefaultsByMacro, a)

enum class Colour { red, green, blue };
ABXBUS_DESCRIBE_ENUM(Colour, red, blue)
enum class Plain { one };

template <class T>
struct Box {
  T value;
};

template <class T>
std::vector<std::string> names_of() {
  return {reflect::member_names<T>.begin(), reflect::member_names<T>.end()};
}

using List = std::vector<std::string>;

}  // namespace

namespace outer::inner {
namespace {
struct Anonymous {
  struct Within {
    int value;
  };
};
}  // namespace
struct Named {};
}  // namespace outer::inner

TEST_CASE("the members of an aggregate are counted and named", "[D-TEV-1]") {
  CHECK(names_of<Nothing>().empty());
  CHECK(names_of<Single>() == List{"only"});
  CHECK(names_of<Point>() == List{"x", "y"});
  CHECK(names_of<Nested>() == List{"nothing", "point", "points", "last"});
  CHECK(names_of<Arrays>() == List{"three", "grid", "name", "words", "text"});
  CHECK(names_of<Heavy>() == List{"any", "function", "mutex", "pointer", "optional", "map"});
  CHECK(names_of<Initialised>() == List{"a", "b", "c"});
  CHECK(names_of<Box<Box<int>>>() == List{"value"});
}

TEST_CASE("up to 64 members are reflected", "[D-TEV-1]") {
  STATIC_REQUIRE(reflect::member_count<SixtyFour> == 64);
  CHECK(reflect::member_names<SixtyFour>[0] == "a0");
  CHECK(reflect::member_names<SixtyFour>[63] == "last");
  STATIC_REQUIRE(!reflect::reflectable<SixtyFive>);
}

TEST_CASE("members come as lvalues of the object, in declaration order", "[D-TEV-1]") {
  Nested object{{}, {1, 2}, {{3, 4}}, 5};
  List seen;
  reflect::for_each_member(object, [&](std::string_view name, auto& member) {
    seen.emplace_back(name);
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, int>) member = 6;
  });
  CHECK(seen == List{"nothing", "point", "points", "last"});
  CHECK(object.last == 6);

  const Point fixed{7, 8};
  int sum = 0;
  reflect::for_each_member(fixed, [&](std::string_view, const int& member) { sum += member; });
  CHECK(sum == 15);

  SixtyFour many{};
  reflect::for_each_member(many, [](std::string_view name, int& member) { member = name == "last" ? 64 : 1; });
  CHECK(many.last == 64);
  CHECK(many.g2 == 1);
}

TEST_CASE("types that are no plain aggregates are not reflectable without a macro", "[D-TEV-1]") {
  STATIC_REQUIRE(!reflect::reflectable<Private>);
  STATIC_REQUIRE(!reflect::reflectable<Constructed>);
  STATIC_REQUIRE(!reflect::reflectable<DerivedFromNothing>);
  STATIC_REQUIRE(!reflect::reflectable<Virtual>);
  STATIC_REQUIRE(!reflect::reflectable<WithReference>);
  STATIC_REQUIRE(!reflect::reflectable<WithoutDefault>);
  STATIC_REQUIRE(!reflect::reflectable<Either>);
  STATIC_REQUIRE(!reflect::reflectable<int>);
  STATIC_REQUIRE(!reflect::reflectable<Colour>);
  CHECK(Private().sum() == 0);
}

TEST_CASE("ABXBUS_DESCRIBE lists the members of any other type", "[D-TEV-1]") {
  CHECK(names_of<Described>() == List{"first", "second"});
  CHECK(names_of<Derived>() == List{"inherited", "own"});
  CHECK(names_of<DescribedEmpty>().empty());
  CHECK(reflect::member_count<SixtyFourDescribed> == 64);
  CHECK(reflect::member_names<SixtyFourDescribed>[63] == "last");
  STATIC_REQUIRE(std::is_same_v<reflect::member_types<Described>, reflect::Types<int, std::string>>);

  Described object;
  reflect::for_each_member(object, [](std::string_view name, auto& member) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, int>) {
      CHECK(name == "first");
      member = 8;
    }
  });
  CHECK(object.first == 8);
}

TEST_CASE("declared defaults and enumerators are known by name", "[D-TYP-3]") {
  STATIC_REQUIRE(!reflect::has_declared_default<Defaults>("a"));
  STATIC_REQUIRE(reflect::has_declared_default<Defaults>("b"));
  STATIC_REQUIRE(reflect::has_declared_default<DefaultsByMacro>("a"));
  STATIC_REQUIRE(!reflect::has_declared_default<DefaultsByMacro>("b"));
  STATIC_REQUIRE(!reflect::has_declared_default<Point>("x"));
  STATIC_REQUIRE(reflect::described_enum<Colour>);
  STATIC_REQUIRE(!reflect::described_enum<Plain>);
}

TEST_CASE("a type's name is unqualified", "[D-TEV-1]") {
  struct Local {
    int number;
    std::string text;
  };
  CHECK(reflect::type_name<Nothing>() == "Nothing");
  CHECK(reflect::type_name<outer::inner::Named>() == "Named");
  CHECK(reflect::type_name<outer::inner::Anonymous>() == "Anonymous");
  CHECK(reflect::type_name<outer::inner::Anonymous::Within>() == "Within");
  CHECK(reflect::type_name<Local>() == "Local");
  CHECK(reflect::type_name<Box<outer::inner::Named>>() == "Box");
  CHECK(reflect::type_name<Box<Box<Local>>>() == "Box");
  CHECK(reflect::type_name<Either>() == "Either");
  CHECK(names_of<Local>() == List{"number", "text"});
  const auto in_lambda = [] {
    struct Inside {};
    return reflect::type_name<Inside>();
  };
  CHECK(in_lambda() == "Inside");
}

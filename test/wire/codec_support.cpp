#include "catch.hpp"

#include <abxbus/describe.hpp>
#include <abxbus/json.hpp>

#include <array>
#include <chrono>
#include <complex>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// Which types have a JSON form, answered at compile time and never by a hard error.

namespace {

using abxbus::detail::codec::readable;
using abxbus::detail::codec::writable;

enum class Level { low, high };
ABXBUS_DESCRIBE_ENUM(Level, low, high)
enum class Bare { one };

struct Node {
  std::string name;
  std::unique_ptr<Node> next;
  std::vector<Node> children;
  std::map<std::string, Node> named;
};
struct Inner {
  int* pointer;
};
struct HasInner {
  int fine;
  std::vector<std::optional<Inner>> inner;
};
struct HasMutex {
  std::mutex mutex;
};
struct HasFunction {
  std::function<void()> callback;
};
struct HasView {
  std::string_view view;
};
struct HasBareEnum {
  Bare bare;
};
struct HasConst {
  const int number = 1;
};
struct HasRaw {
  abxbus::json::value value;
  abxbus::json::object object;
};
struct NoDefault {
  explicit NoDefault(int start) : number(start) {}
  int number;
};
ABXBUS_DESCRIBE(NoDefault, number)
struct Closer {
  void operator()(int* pointer) const { delete pointer; }
};
struct Opaque {
  explicit Opaque(int) {}
};

template <class T>
constexpr bool both = writable<T>&& readable<T>;
template <class T>
constexpr bool neither = !writable<T> && !readable<T>;

}  // namespace

TEST_CASE("every row of the type table is readable and writable", "[D-TYP-1]") {
  STATIC_REQUIRE(both<bool>);
  STATIC_REQUIRE((both<std::int8_t> && both<std::uint8_t> && both<long long> && both<std::uint64_t>));
  STATIC_REQUIRE((both<double> && both<float>));
  STATIC_REQUIRE(both<std::string>);
  STATIC_REQUIRE((both<std::nullptr_t> && both<std::monostate>));
  STATIC_REQUIRE((both<std::optional<int>> && both<std::unique_ptr<int>> && both<std::shared_ptr<int>>));
  STATIC_REQUIRE((both<std::vector<bool>> && both<std::list<int>>));
  STATIC_REQUIRE((both<std::set<int>> && both<std::array<int, 3>> && both<int[3]>));
  STATIC_REQUIRE((both<std::tuple<int, std::string>> && both<std::pair<int, bool>> && both<std::tuple<>>));
  STATIC_REQUIRE((both<std::map<std::string, int>> && both<std::unordered_map<int, std::string>>));
  STATIC_REQUIRE(both<Node>);
  STATIC_REQUIRE(both<Level>);
  STATIC_REQUIRE((both<std::variant<int, std::string, std::monostate>>));
  STATIC_REQUIRE(both<std::chrono::system_clock::time_point>);
  STATIC_REQUIRE((both<std::chrono::seconds> && both<std::chrono::duration<double>>));
  STATIC_REQUIRE((both<abxbus::json::value> && both<abxbus::json::object> && both<abxbus::json::ref> && both<HasRaw>));
}

TEST_CASE("some types are written only", "[D-TYP-1]") {
  STATIC_REQUIRE((writable<std::string_view> && !readable<std::string_view>));
  STATIC_REQUIRE((writable<const char*> && !readable<const char*>));
  STATIC_REQUIRE((writable<HasView> && !readable<HasView>));
  STATIC_REQUIRE((writable<HasConst> && !readable<HasConst>));
  STATIC_REQUIRE((writable<NoDefault> && !readable<NoDefault>));
  STATIC_REQUIRE((writable<std::unique_ptr<int, Closer>> && !readable<std::unique_ptr<int, Closer>>));
}

TEST_CASE("types without a JSON form are recognised, also inside others", "[D-TYP-1]") {
  STATIC_REQUIRE((neither<int*> && neither<void*> && neither<char> && neither<wchar_t> && neither<void>));
  STATIC_REQUIRE((neither<Bare> && neither<HasBareEnum>));
  STATIC_REQUIRE((neither<std::mutex> && neither<std::function<void()>> && neither<std::thread>));
  STATIC_REQUIRE((neither<HasMutex> && neither<HasFunction> && neither<HasInner>));
  STATIC_REQUIRE((neither<std::vector<int*>> && neither<std::optional<Inner>>));
  STATIC_REQUIRE((neither<std::map<double, int>> && neither<std::map<bool, int>>));
  STATIC_REQUIRE((neither<std::variant<int, int*>> && neither<std::tuple<int, std::mutex*>>));
  STATIC_REQUIRE((neither<Opaque> && neither<std::exception_ptr> && neither<std::complex<double>>));
  STATIC_REQUIRE(neither<std::chrono::steady_clock::time_point>);
  STATIC_REQUIRE((neither<std::weak_ptr<int>> && neither<std::multimap<std::string, int>>));
  STATIC_REQUIRE((neither<char[16]> && neither<std::reference_wrapper<int>>));
}

#include "catch.hpp"

#include <abxbus/json.hpp>

#include <string>
#include <thread>
#include <utility>
#include <vector>

// The shared JSON value.

namespace {

namespace json = abxbus::json;

}  // namespace

TEST_CASE("an empty ref reads as an empty object", "[json.ref]") {
  const json::ref empty;
  CHECK(!empty);
  CHECK(empty.get().as_object().empty());
}

TEST_CASE("a ref shares one value", "[json.ref]") {
  const json::object source{{"a", 1}};
  const json::ref first = source;
  const json::ref second = first;
  CHECK(first);
  CHECK(&first.get() == &second.get());
  CHECK(json::dump(second.get()) == R"({"a":1})");
  CHECK(source.size() == 1);
}

TEST_CASE("a ref takes over what is moved into it, and is moved itself", "[json.ref]") {
  json::value source = json::parse(R"(["a string that is too long to be stored inline"])");
  const json::value* const element = &source.as_array()[0];
  json::ref first = std::move(source);
  CHECK(&first.get().as_array()[0] == element);
  json::ref second = std::move(first);
  CHECK(!first);  // NOLINT(bugprone-use-after-move): empty by contract
  CHECK(&second.get().as_array()[0] == element);
  second = json::ref();
  CHECK(!second);
  json::object members{{"b", 2}};
  second = std::move(members);
  CHECK(second.get().at("b") == 2);
}

TEST_CASE("copies of a ref may be used and dropped by several threads", "[json.ref]") {
  std::vector<std::size_t> seen(4);
  {
    std::vector<std::thread> threads;
    json::ref shared = json::parse("[1,2,3]");
    for (std::size_t& size : seen) {
      threads.emplace_back([copy = shared, &size] {
        for (int i = 0; i < 1000; ++i) {
          const json::ref another = copy;
          size += another.get().as_array().size();
        }
      });
    }
    shared = json::ref();
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(seen == std::vector<std::size_t>(4, 3000));
}

#include "event/clock.hpp"
#include "event/id_source.hpp"
#include "support/catch.hpp"

#include <abxbus/error.hpp>
#include <abxbus/uuid.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

using abxbus::Uuid;
using abxbus::detail::make_v7;

namespace {

std::uint64_t milliseconds_of(const Uuid& id) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 6; ++i) value = value << 8 | id.bytes()[i];
  return value;
}

}  // namespace

TEST_CASE("a generated id has the form and the fields of a UUIDv7", "[D-ID-1]") {
  const std::int64_t before = abxbus::detail::now_ns();
  const Uuid id = Uuid::v7();
  const std::int64_t after = abxbus::detail::now_ns();
  const std::string text = id.str();

  REQUIRE(text.size() == 36);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    const std::string_view allowed = hyphen ? "-" : "0123456789abcdef";
    CHECK(allowed.find(text[i]) != std::string_view::npos);
  }
  CHECK(text[14] == '7');
  CHECK(std::string_view("89ab").find(text[19]) != std::string_view::npos);
  CHECK(milliseconds_of(id) >= static_cast<std::uint64_t>(before / 1'000'000));
  CHECK(milliseconds_of(id) <= static_cast<std::uint64_t>(after / 1'000'000));
}

TEST_CASE("the time stands in an id as milliseconds and the rest in the bits behind the version", "[D-ID-1][D-ID-2]") {
  // 0x018F8E401234 milliseconds and 0xABCDE nanoseconds.
  const std::int64_t time = 0x018F8E401234LL * 1'000'000 + 0xABCDE;
  const std::string text = make_v7(time, 12345).str();
  CHECK(text.substr(0, 18) == "018f8e40-1234-7abc");
  // The variant, then 0xDE, the rest of the nanoseconds: 10 11 0111 10..
  CHECK(text.substr(19, 2) == "b7");
  CHECK(make_v7(time, 12345) == make_v7({time, 12345}));
}

TEST_CASE("ids of many threads are all different", "[D-ID-1]") {
  constexpr std::size_t threads = 8;
  constexpr std::size_t per_thread = 20'000;
  std::vector<std::vector<Uuid>> ids(threads);
  {
    std::vector<std::jthread> running;
    for (auto& own : ids) {
      own.reserve(per_thread);
      running.emplace_back([&own] {
        for (std::size_t i = 0; i < per_thread; ++i) own.push_back(Uuid::v7());
      });
    }
  }
  std::unordered_set<Uuid> all;
  for (const auto& own : ids) all.insert(own.begin(), own.end());
  CHECK(all.size() == threads * per_thread);
}

TEST_CASE("ids of many threads are different even when time stands still", "[D-ID-1]") {
  constexpr std::size_t threads = 16;
  constexpr std::size_t per_thread = 10'000;
  std::vector<std::vector<Uuid>> ids(threads);
  {
    std::vector<std::jthread> running;
    for (auto& own : ids) {
      own.reserve(per_thread);
      running.emplace_back([&own] {
        for (std::size_t i = 0; i < per_thread; ++i)
          own.push_back(make_v7(1'700'000'000'123'456'789, abxbus::detail::next_salt()));
      });
    }
  }
  std::unordered_set<Uuid> all;
  for (const auto& own : ids) all.insert(own.begin(), own.end());
  CHECK(all.size() == threads * per_thread);
}

TEST_CASE("the parts of one salt give different ids at one time", "[D-ID-1]") {
  std::unordered_set<Uuid> all;
  const std::uint64_t salt = abxbus::detail::next_salt();
  for (std::uint64_t i = 0; i < 50'000; ++i)
    all.insert(make_v7(1'700'000'000'000'000'000, abxbus::detail::part_salt(salt, i)));
  CHECK(all.size() == 50'000);
}

TEST_CASE("ids made one after another on one thread increase as text", "[D-ID-2]") {
  std::vector<std::string> texts;
  for (int i = 0; i < 20'000; ++i) texts.push_back(Uuid::v7().str());
  CHECK(std::is_sorted(texts.begin(), texts.end()));
}

TEST_CASE("a later time gives a greater id whatever the salts", "[D-ID-2]") {
  const std::int64_t start = 1'700'000'000'000'000'000;
  for (const std::int64_t step : {1LL, 255LL, 256LL, 999'999LL, 1'000'000LL, 86'400'000'000'000LL}) {
    for (std::uint64_t salt = 0; salt < 64; ++salt) {
      const Uuid earlier = make_v7(start, salt * 0x123456789ABCDEFULL);
      const Uuid later = make_v7(start + step, ~salt);
      CHECK(earlier < later);
      CHECK(earlier.str() < later.str());
    }
  }
}

TEST_CASE("a supplied id is read in either case and kept in lower case", "[D-ID-3]") {
  CHECK(Uuid::parse("018F8E40-1234-7000-8000-00000000ABCD").str() == "018f8e40-1234-7000-8000-00000000abcd");
  // Any version: 1, 4, 5, none.
  for (const std::string text : {"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "f47ac10b-58cc-4372-a567-0e02b2c3d479",
                                 "98dc1aae-798a-597c-8b2e-2c0511f4a81a", "00000000-0000-0000-0000-000000000000",
                                 "ffffffff-ffff-ffff-ffff-ffffffffffff"})
    CHECK(Uuid::parse(text).str() == text);
}

TEST_CASE("what is no hyphenated UUID is rejected", "[D-ID-3]") {
  for (const std::string_view text : {
           "", "zzz", "018f8e4012347000800000000000abcd",  // no hyphens
           "018f8e40-1234-7000-8000-00000000abc",          // too short
           "018f8e40-1234-7000-8000-00000000abcde",        // too long
           "018f8e40-1234-7000-8000-00000000abcg",         // no hexadecimal digit
           "018f8e401-234-7000-8000-00000000abcd",         // hyphen elsewhere
           "018f8e40-1234-7000-8000_00000000abcd",         // another separator
           "{18f8e40-1234-7000-8000-00000000abc}",         // braces
           " 18f8e40-1234-7000-8000-00000000abcd",         // blank
           "018f8e40-1234-7000-8000-00000000ab-d",         // hyphen for a digit
       }) {
    INFO(text);
    CHECK_THROWS_AS(Uuid::parse(text), abxbus::ValidationError);
  }
}

TEST_CASE("the default id is the nil id", "[D-ID-8]") {
  CHECK(Uuid{}.str() == "00000000-0000-0000-0000-000000000000");
  CHECK(Uuid{}.is_nil());
  CHECK_FALSE(Uuid::v7().is_nil());
}

TEST_CASE("ids compare with ids and with texts alike", "[D-ID-3]") {
  const Uuid low = Uuid::parse("018f8e40-1234-7000-8000-00000000abcd");
  const Uuid high = Uuid::parse("018f8e40-1234-7000-8000-00000000abce");
  CHECK(low < high);
  CHECK(low != high);
  CHECK(low == Uuid::parse(low.str()));
  CHECK(low == "018f8e40-1234-7000-8000-00000000abcd");
  CHECK("018f8e40-1234-7000-8000-00000000abcd" == low);
  CHECK(low == low.str());
  CHECK(low != high.str());
  CHECK(low < high.str());
  CHECK(high.str() > low);
  CHECK(low != "zzz");
  CHECK(std::hash<Uuid>{}(low) != std::hash<Uuid>{}(high));
}

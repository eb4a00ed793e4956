#include "event/log.hpp"

#include "support/catch.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace abxbus;

namespace {

/// Default sink and level again when the test ends.
struct Restore {
  ~Restore() {
    set_log_sink({});
    set_log_level(LogLevel::warning);
  }
};

}  // namespace

TEST_CASE("messages from the threshold on reach the sink with their level", "[T-CNV-7]") {
  const Restore restore;
  std::vector<std::pair<LogLevel, std::string>> lines;
  set_log_sink([&](LogLevel level, std::string_view text) { lines.emplace_back(level, text); });

  CHECK(log_level() == LogLevel::warning);
  detail::log(LogLevel::info, "not this");
  detail::log(LogLevel::warning, "slow");
  detail::log(LogLevel::error, "broken");
  CHECK_FALSE(detail::log_enabled(LogLevel::info));
  CHECK(detail::log_enabled(LogLevel::warning));

  set_log_level(LogLevel::debug);
  CHECK(log_level() == LogLevel::debug);
  detail::log(LogLevel::debug, "detail");
  set_log_level(LogLevel::error);
  detail::log(LogLevel::warning, "nor this");

  const std::vector<std::pair<LogLevel, std::string>> expected = {
      {LogLevel::warning, "slow"}, {LogLevel::error, "broken"}, {LogLevel::debug, "detail"}};
  CHECK(lines == expected);
}

TEST_CASE("no lock is held while the sink runs", "[T-CNV-7]") {
  const Restore restore;
  int calls = 0;
  // With a lock held each of these would block for ever.
  set_log_sink([&](LogLevel, std::string_view text) {
    ++calls;
    set_log_level(log_level());
    if (text == "outer") detail::log(LogLevel::error, "inner");
    if (text == "inner") set_log_sink([&](LogLevel, std::string_view) { calls += 100; });
  });
  detail::log(LogLevel::error, "outer");
  CHECK(calls == 2);
  detail::log(LogLevel::error, "next");
  CHECK(calls == 102);
}

TEST_CASE("a sink that throws harms nobody", "[T-CNV-7]") {
  const Restore restore;
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    throw std::runtime_error("sink");
  });
  detail::log(LogLevel::error, "a");
  detail::log(LogLevel::error, "b");
  CHECK(calls == 2);
}

TEST_CASE("a replaced sink is destroyed", "[T-CNV-7]") {
  const Restore restore;
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = captured;
  set_log_sink([held = std::move(captured)](LogLevel, std::string_view) {});
  CHECK_FALSE(alive.expired());
  set_log_sink([](LogLevel, std::string_view) {});
  CHECK(alive.expired());
}

TEST_CASE("any threads may log and replace the sink at once", "[T-CNV-7]") {
  const Restore restore;
  std::atomic<int> seen{0};
  const auto sink = [&](LogLevel, std::string_view) { ++seen; };
  set_log_sink(sink);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 1'000; ++i) detail::log(LogLevel::error, "x");
      });
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) set_log_sink(sink);
    });
  }
  CHECK(seen == 3'000);
}

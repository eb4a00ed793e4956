// First-result completion, one handler after the other.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>
#include <abxbus/json.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Question {
  using event_result_type = std::string;
};
struct CountQuestion {
  using event_result_type = std::int64_t;
};
struct YesNoQuestion {
  using event_result_type = bool;
};
struct ListQuestion {
  using event_result_type = std::vector<std::int64_t>;
};
struct Remark {};

EventBusOptions first_options() {
  return {.event_handler_completion = EventHandlerCompletion::first};
}

/// What a bus in serial + first mode answers when the first handler returns `value`.
template <class T>
struct Outcome {
  Names statuses;
  std::optional<event_result_t<T>> value;
  int second_calls;
};

template <class T>
Outcome<T> ask_with(std::string_view bus_name, event_result_t<T> value) {
  std::atomic<int> second_calls = 0;
  EventBus bus(bus_name, first_options());
  bus.on<T>([value](const T&) { return value; });
  bus.on<T>([&, value](const T&) {
    ++second_calls;
    return value;
  });
  auto event = bus.emit(T{}).now();
  return {statuses(event), event.event_result({.raise_if_any = false}), second_calls.load()};
}

}  // namespace

TEST_CASE("falsy values win", "[S-FST-1][S-FST-3]") {
  const Names expected{"completed", "error"};

  const auto text = ask_with<Question>("FstEmptyText", "");
  REQUIRE(text.statuses == expected);
  REQUIRE(text.value == std::optional<std::string>(""));
  REQUIRE(text.second_calls == 0);

  const auto number = ask_with<CountQuestion>("FstZero", 0);
  REQUIRE(number.statuses == expected);
  REQUIRE(number.value == std::optional<std::int64_t>(0));
  REQUIRE(number.second_calls == 0);

  const auto answer = ask_with<YesNoQuestion>("FstFalse", false);
  REQUIRE(answer.statuses == expected);
  REQUIRE(answer.value == std::optional<bool>(false));
  REQUIRE(answer.second_calls == 0);

  const auto list = ask_with<ListQuestion>("FstEmptyList", {});
  REQUIRE(list.statuses == expected);
  REQUIRE(list.value.has_value());
  REQUIRE(list.value->empty());
  REQUIRE(list.second_calls == 0);
}

TEST_CASE("null, event, error and timeout neither win nor stop the search", "[S-FST-1][S-FST-2][S-FST-3]") {
  Recorder called;
  std::atomic<bool> stopped = false;
  EventBus bus("FstNoWinners", first_options());
  const Event<Remark> remark = make_event(Remark{});
  bus.on<Question>([&](const Question&) { called.add("void"); });
  bus.on<Question>([&](const Question&) -> std::optional<std::string> {
    called.add("null");
    return std::nullopt;
  });
  bus.on<Question>([&, remark](const Question&) {
    called.add("event");
    return remark;
  });
  bus.on<Question>([&](const Question&) -> std::string {
    called.add("throw");
    throw std::runtime_error("no idea");
  });
  bus.on<Question>(
      [&](const Question&, std::stop_token stop) -> std::string {
        called.add("timeout");
        stopped = wait_for_stop(stop);
        return "too late";
      },
      {.handler_timeout = 20ms});
  bus.on<Question>([&](const Question&) -> std::exception_ptr {
    called.add("returned error");
    return std::make_exception_ptr(std::runtime_error("returned"));
  });
  bus.on<Question>([&](const Question&) -> std::string {
    called.add("winner");
    return "winner";
  });
  bus.on<Question>([&](const Question&) -> std::string {
    called.add("late");
    return "late";
  });

  auto event = bus.emit(Question{}).now();

  REQUIRE(called.notes() == Names{"void", "null", "event", "throw", "timeout", "returned error", "winner"});
  REQUIRE(statuses(event) ==
          Names{"completed", "completed", "completed", "error", "error", "error", "completed", "error"});
  const EventResults results = event.event_results();
  REQUIRE(results[2].event_value() == std::optional<BaseEvent>(remark));
  REQUIRE(results[3].error_message() == "no idea");
  REQUIRE(results[4].error_type() == "EventHandlerTimeoutError");
  REQUIRE(results[5].error_message() == "returned");
  REQUIRE(results[7].error_type() == "EventHandlerCancelledError");
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
  REQUIRE(eventually([&] { return stopped.load(); }));
}

TEST_CASE("losers that never started are cancelled", "[S-FST-3][S-FST-5]") {
  std::atomic<int> late_calls = 0;
  EventBus bus("FstCancelled", first_options());
  bus.on<Question>([](const Question&) -> std::string { return "winner"; });
  for (int i = 0; i < 3; ++i)
    bus.on<Question>([&](const Question&) -> std::string {
      ++late_calls;
      return "late";
    });

  auto event = bus.emit(Question{}).now();

  REQUIRE(late_calls == 0);
  const EventResults results = event.event_results();
  REQUIRE(results.size() == 4);
  for (std::size_t i = 1; i < results.size(); ++i) {
    REQUIRE(results[i].status() == EventResultStatus::error);
    REQUIRE(results[i].error_type() == "EventHandlerCancelledError");
    REQUIRE(results[i].error_message() == "Cancelled: first result resolved");
    REQUIRE(results[i].started_at().has_value());
    REQUIRE(results[i].completed_at().has_value());
    REQUIRE(*results[i].started_at() == *results[i].completed_at());
    REQUIRE(*results[i].completed_at() <= *event.event_completed_at());
  }
}

TEST_CASE("without a winner nothing is cancelled and the result is null", "[S-FST-8]") {
  EventBus bus("FstNobody", first_options());
  bus.on<Question>([](const Question&) -> std::optional<std::string> { return std::nullopt; });
  bus.on<Question>([](const Question&) {});
  bus.on<Question>([](const Question&) { return make_event(Remark{}); });

  auto event = bus.emit(Question{}).now();

  REQUIRE(statuses(event) == Names{"completed", "completed", "completed"});
  REQUIRE(event.event_result() == std::nullopt);
  REQUIRE_THROWS_AS(event.event_result({.raise_if_none = true}), EventResultNoneError);
}

TEST_CASE("without a winner the handlers' own errors are what the accessor raises", "[S-FST-8][S-FST-13]") {
  std::atomic<int> calls = 0;
  EventBus bus("FstEveryThrows", first_options());
  for (int i = 0; i < 3; ++i)
    bus.on<Question>([&](const Question&) -> std::string {
      ++calls;
      throw std::runtime_error("broken");
    });

  auto event = bus.emit(Question{}).now();

  REQUIRE(calls == 3);
  REQUIRE(statuses(event) == Names{"error", "error", "error"});
  for (const EventResult& result : event.event_results()) REQUIRE(result.error_message() == "broken");
  REQUIRE(event.event_result({.raise_if_any = false}) == std::nullopt);
  REQUIRE_THROWS_AS(event.event_result(), EventHandlerErrors);
}

TEST_CASE("losers count as handler errors for the accessor", "[S-FST-11]") {
  EventBus bus("FstAccessor", first_options());
  bus.on<Question>([](const Question&) -> std::string { return "winner"; });
  bus.on<Question>([](const Question&) -> std::string { return "loser"; });

  auto one_loser = bus.emit(Question{}).now();
  REQUIRE_THROWS_AS(one_loser.event_result(), EventHandlerCancelledError);
  REQUIRE_THROWS_WITH(one_loser.event_result(), abxbus::test::contains("first result resolved"));
  REQUIRE(one_loser.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));

  bus.on<Question>([](const Question&) -> std::string { return "loser"; });
  auto two_losers = bus.emit(Question{}).now();
  REQUIRE_THROWS_AS(two_losers.event_result(), EventHandlerErrors);
  REQUIRE_THROWS_WITH(two_losers.event_result(), abxbus::test::contains("first result resolved"));
  REQUIRE(two_losers.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
}

TEST_CASE("the bus default first and an event's own all", "[S-FST-13][S-FST-3]") {
  std::atomic<int> second_calls = 0;
  EventBus bus("FstPinnedA", first_options());
  bus.on<Question>([](const Question&) -> std::string { return "first"; });
  bus.on<Question>([&](const Question&) -> std::string {
    ++second_calls;
    return "second";
  });

  auto plain = bus.emit(Question{}).now();
  REQUIRE(second_calls == 0);
  REQUIRE(statuses(plain) == Names{"completed", "error"});
  REQUIRE(plain.event_results()[1].error_type() == "EventHandlerCancelledError");
  REQUIRE_FALSE(plain.event_handler_completion().has_value());

  auto all = bus.emit(Question{}, {.event_handler_completion = EventHandlerCompletion::all}).now();
  REQUIRE(second_calls == 1);
  REQUIRE(statuses(all) == Names{"completed", "completed"});
}

TEST_CASE("null, then a winner: the third is not called", "[S-FST-13][S-FST-2]") {
  std::atomic<int> third_calls = 0;
  EventBus bus("FstPinnedC", first_options());
  bus.on<Question>([](const Question&) -> std::optional<std::string> { return std::nullopt; });
  bus.on<Question>([](const Question&) -> std::string { return "winner"; });
  bus.on<Question>([&](const Question&) { ++third_calls; });

  auto event = bus.emit(Question{}).now();

  REQUIRE(third_calls == 0);
  REQUIRE(statuses(event) == Names{"completed", "completed", "error"});
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
}

TEST_CASE("an event object, then a winner: the raw first result keeps the event", "[S-FST-13][S-FST-2]") {
  std::atomic<int> third_calls = 0;
  EventBus bus("FstPinnedD", first_options());
  const Event<Remark> remark = make_event(Remark{});
  bus.on<Question>([remark](const Question&) { return remark; });
  bus.on<Question>([](const Question&) -> std::string { return "winner"; });
  bus.on<Question>([&](const Question&) { ++third_calls; });

  auto event = bus.emit(Question{}).now();

  REQUIRE(third_calls == 0);
  REQUIRE(statuses(event) == Names{"completed", "completed", "error"});
  REQUIRE(event.event_results()[0].event_value() == std::optional<BaseEvent>(remark));
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("winner"));
}

TEST_CASE("mode all on a first bus runs every handler", "[S-FST-12][S-FST-13]") {
  std::atomic<int> calls = 0;
  EventBus bus("FstPinnedG", first_options());
  bus.on<Question>([&](const Question&) {
    ++calls;
    return make_event(Remark{});
  });
  bus.on<Question>([&](const Question&) { ++calls; });
  bus.on<Question>([&](const Question&) -> std::string {
    ++calls;
    return "winner";
  });
  bus.on<Question>([&](const Question&) -> std::string {
    ++calls;
    return "late";
  });

  auto event = bus.emit(Question{}, {.event_handler_completion = EventHandlerCompletion::all}).now();

  REQUIRE(calls == 4);
  REQUIRE(statuses(event) == Names{"completed", "completed", "completed", "completed"});
  REQUIRE(event.event_result() == std::optional<std::string>("winner"));
}

TEST_CASE("asking for the first result leaves the mode all alone", "[S-FST-12]") {
  std::atomic<int> calls = 0;
  EventBus bus("FstModeAll");
  for (int i = 0; i < 3; ++i)
    bus.on<Question>([&, i](const Question&) {
      ++calls;
      return std::to_string(i);
    });

  auto waited = bus.emit(Question{}).now({.first_result = true});
  REQUIRE(waited.wait().event_result() == std::optional<std::string>("0"));
  REQUIRE(calls == 3);
  REQUIRE(statuses(waited) == Names{"completed", "completed", "completed"});
  REQUIRE_FALSE(waited.event_handler_completion().has_value());

  auto read = bus.emit(Question{});
  REQUIRE(read.event_result() == std::optional<std::string>("0"));
  read.wait();
  REQUIRE(calls == 6);
  REQUIRE(statuses(read) == Names{"completed", "completed", "completed"});
}

TEST_CASE("a slow first handler and a short now", "[S-FST-13]") {
  Gate gate;
  EventBus bus("FstPinnedH", first_options());
  bus.on<Question>([&](const Question&) -> std::string {
    gate.wait();
    return "slow";
  });
  OpenAtExit guard(gate);

  auto event = bus.emit(Question{});
  REQUIRE_THROWS_AS(event.now({.timeout = 10ms, .first_result = true}), TimeoutError);
  gate.open();
  REQUIRE(event.wait().event_result() == std::optional<std::string>("slow"));
}

TEST_CASE("a coroutine wins over a plain handler behind it", "[S-FST-3][S-FST-13]") {
  std::atomic<int> late_calls = 0;
  EventBus bus("FstCoroutine", first_options());
  EventBus helper("FstCoroutineHelper");
  helper.on<CountQuestion>([](const CountQuestion&) -> std::int64_t { return 7; });
  bus.on<Question>([](const Question&) -> abxbus::task<std::optional<std::string>> { co_return std::nullopt; });
  bus.on<Question>([&](const Question&) -> abxbus::task<std::string> {
    auto event = helper.emit(CountQuestion{});
    co_await event.now_async();
    co_return std::to_string(*event.event_result());
  });
  bus.on<Question>([&](const Question&) -> std::string {
    ++late_calls;
    return "late";
  });

  auto event = bus.emit(Question{}).now();

  REQUIRE(late_calls == 0);
  REQUIRE(statuses(event) == Names{"completed", "completed", "error"});
  REQUIRE(event.event_result({.raise_if_any = false}) == std::optional<std::string>("7"));
}

// User code runs without any library lock: callbacks call everything, and what they hold dies at the right moment.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {
  using event_result_type = std::string;
};
struct Other {};

/// Calls a function when it dies; moved from, it does nothing.
class AtDeath {
 public:
  explicit AtDeath(std::function<void()> action) : action_(std::move(action)) {}
  AtDeath(AtDeath&& other) noexcept : action_(std::exchange(other.action_, nullptr)) {}
  AtDeath& operator=(AtDeath&&) = delete;
  ~AtDeath() {
    if (action_) action_();
  }

 private:
  std::function<void()> action_;
};

struct Mourned {
  std::shared_ptr<AtDeath> tail;
};

}  // namespace

TEST_CASE("a handler may call every operation of its own bus", "[S-MT-5]") {
  std::atomic<int> others = 0;
  std::atomic<int> passing_calls = 0;
  EventBus bus("MtInsideHandler");
  bus.on<Other>([&](const Other&) { ++others; });
  bus.on<Work>([&](Event<Work> event) -> std::string {
    const EventHandler added = bus.on<Other>([&](const Other&) { ++passing_calls; });
    bus.emit(Other{}).now();
    bus.off<Other>(added);
    bus.emit(Other{});
    const auto found = bus.find<Other>();
    static_cast<void>(bus.event_history().events());
    static_cast<void>(bus.handlers_by_key());
    static_cast<void>(bus.options());
    static_cast<void>(event.event_results());
    EventBus passing("MtInsidePassing");
    passing.on<Other>([&](const Other&) { ++passing_calls; });
    passing.emit(Other{}).now();
    return found ? "found" : "not found";
  });
  auto event = bus.emit(Work{}).now();
  REQUIRE(event.event_result() == std::optional<std::string>("found"));
  REQUIRE(bus.wait_until_idle());
  REQUIRE(others == 2);
  REQUIRE(passing_calls == 2);
}

TEST_CASE("predicates of find and of accessors may call the library", "[S-MT-5]") {
  EventBus bus("MtPredicates", {.max_history_size = std::nullopt});
  bus.on<Work>([](const Work&) -> std::string { return "value"; });
  bus.on<Other>([](const Other&) {});
  auto event = bus.emit(Work{}).now();

  const auto found = bus.find<Work>({.where = [&](const Event<Work>& candidate) {
    bus.emit(Other{}).now();
    bus.off<Other>(bus.on<Other>([](const Other&) {}));
    return candidate == event && bus.find<Other>().has_value();
  }});
  REQUIRE(found == std::optional<Event<Work>>(event));

  const auto value = event.event_result({.include = [&](const std::optional<std::string>& each, const EventResult&) {
    bus.emit(Other{}).now();
    return each.has_value();
  }});
  REQUIRE(value == std::optional<std::string>("value"));
}

TEST_CASE("the predicate of a waiting find may call the library", "[S-MT-5]") {
  std::atomic<int> looked = 0;
  std::atomic<bool> found = false;
  EventBus other("MtFutureOther");
  EventBus bus("MtFuturePredicate");
  bus.on<Work>([](const Work&) -> std::string { return "value"; });
  other.on<Other>([](const Other&) {});
  Caller finder([&] {
    found = bus.find<Work>({.past = false,
                            .future = true,
                            .where =
                                [&](const Event<Work>&) {
                                  other.emit(Other{}).now();
                                  static_cast<void>(bus.event_history().size());
                                  return ++looked == 2;
                                }})
                .has_value();
  });
  REQUIRE(eventually([&] { return bus.find_waiter_count() == 1; }));
  bus.emit(Work{});
  bus.emit(Work{});
  REQUIRE(finder.finishes());
  REQUIRE(found.load());
}

TEST_CASE("a log sink may call the library", "[S-MT-5]") {
  std::atomic<int> lines = 0;
  EventBus other("MtSinkOther");
  EventBus bus("MtSinkBus");
  other.on<Other>([](const Other&) {});
  {
    struct Restore {
      ~Restore() { set_log_sink({}); }
    } const restore;
    set_log_sink([&](LogLevel, std::string_view) {
      ++lines;
      other.emit(Other{}).now();
      bus.off("*", bus.on("*", [](BaseEvent) {}));
    });
    bus.on<Work>([](const Work&) -> std::string { return "one"; }, {.handler_name = "twin"});
    bus.on<Work>([](const Work&) -> std::string { return "two"; }, {.handler_name = "twin"});
    EventBus namesake("MtSinkBus");
  }
  REQUIRE(lines == 2);
  REQUIRE(bus.handlers().size() == 2);
}

TEST_CASE("destructors of payloads, values and captures may call the library", "[S-MT-5][S-MT-18]") {
  std::atomic<int> deaths = 0;
  EventBus other("MtDeathOther", {.max_history_size = 0});
  other.on<Other>([](const Other&) {});
  const auto action = [&] {
    ++deaths;
    other.emit(Other{}).now();
    other.off("*", other.on("*", [](BaseEvent) {}));
  };
  {
    EventBus bus("MtDeath", {.max_history_size = 0});
    const EventHandler handler =
        bus.on<Mourned>([tail = std::make_shared<AtDeath>(action)](const Mourned&) { return tail != nullptr; });
    bus.emit(Mourned{std::make_shared<AtDeath>(action)}).now();
    REQUIRE(eventually([&] { return deaths == 1; }));
    bus.off(handler);
    REQUIRE(eventually([&] { return deaths == 2; }));
    bus.on<Other>([tail = std::make_shared<AtDeath>(action)](const Other&) {});
  }
  REQUIRE(eventually([&] { return deaths == 3; }));
}

TEST_CASE("a capture lives while any invocation runs", "[S-MT-18][S-MT-13]") {
  Gate gate;
  std::atomic<int> running = 0;
  std::atomic<int> died_while_running = 0;
  std::atomic<int> deaths = 0;
  EventBus bus("MtCapture", {.event_concurrency = EventConcurrency::parallel});
  const EventHandler handler = bus.on<Work>([&, tail = std::make_shared<AtDeath>([&] {
                                                  ++deaths;
                                                  if (running != 0) ++died_while_running;
                                                })](const Work&) -> std::string {
    ++running;
    gate.wait();
    const std::string text = tail ? "alive" : "dead";
    --running;
    return text;
  });
  OpenAtExit guard(gate);
  auto one = bus.emit(Work{});
  auto two = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(2));
  bus.off(handler);
  REQUIRE(bus.handlers().empty());
  std::this_thread::sleep_for(20ms);
  REQUIRE(deaths == 0);
  gate.open();
  one.wait();
  two.wait();
  REQUIRE(eventually([&] { return deaths == 1; }));
  REQUIRE(died_while_running == 0);
  REQUIRE(one.event_result() == std::optional<std::string>("alive"));
}

TEST_CASE("a capture of an abandoned handler lives until its code returns", "[S-MT-18][S-MT-13]") {
  Gate gate;
  std::atomic<int> deaths = 0;
  std::atomic<int> deaths_at_end = -1;
  EventBus bus("MtAbandonedCapture");
  const EventHandler handler = bus.on<Work>(
      [&, tail = std::make_shared<AtDeath>([&] { ++deaths; })](const Work&) -> std::string {
        gate.wait();
        deaths_at_end = deaths.load();
        return tail ? "alive" : "dead";
      },
      {.handler_timeout = 20ms});
  OpenAtExit guard(gate);
  bus.emit(Work{}).wait();
  bus.off(handler);
  bus.destroy();
  REQUIRE(deaths == 0);
  gate.open();
  REQUIRE(eventually([&] { return deaths == 1; }));
  REQUIRE(deaths_at_end == 0);
}

TEST_CASE("the frame of a coroutine handler and its arguments live until it ends", "[S-MT-13]") {
  Gate gate;
  Recorder log;
  EventBus source("MtFrameSource");
  source.on<Other>([&](const Other&) { gate.wait(); });
  EventBus bus("MtFrame", {.max_history_size = 0});
  const EventHandler handler =
      bus.on<Mourned>([&, text = std::string("captured by the lambda")](const Mourned& mourned) -> abxbus::task<> {
        auto other = source.emit(Other{});
        co_await other.wait_async();
        log.add(text);
        log.add(mourned.tail ? "payload alive" : "payload dead");
      });
  OpenAtExit guard(gate);
  bus.emit(Mourned{std::make_shared<AtDeath>([&] { log.add("payload died"); })});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.off(handler);
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.wait_for_size(3));
  REQUIRE(log.notes() == Names{"captured by the lambda", "payload alive", "payload died"});
}

TEST_CASE("nobody needs to keep handles", "[S-MT-13]") {
  std::atomic<int> handled = 0;
  std::atomic<int> deaths = 0;
  EventBus bus("MtNoHandles", {.max_history_size = 0});
  bus.on<Mourned>([&](const Mourned& mourned) {
    if (mourned.tail) ++handled;
  });
  for (int i = 0; i < 50; ++i) {
    auto event = bus.emit(Mourned{std::make_shared<AtDeath>([&] { ++deaths; })});
    if (i % 2 == 0) static_cast<void>(event.wait_async());  // the future is dropped, and then the handle
    if (i % 5 == 0) static_cast<void>(event.now_async());
  }
  REQUIRE(bus.wait_until_idle());
  REQUIRE(handled == 50);
  REQUIRE(eventually([&] { return deaths == 50; }));
}

TEST_CASE("an event and its results outlive their bus", "[S-MT-13]") {
  Event<Work> event;
  std::optional<EventResult> result;
  {
    EventBus bus("MtOutlived");
    bus.on<Work>([](const Work&) -> std::string { return "kept"; }, {.handler_name = "keeper"});
    event = bus.emit(Work{}).now();
    result = event.event_results()[0];
  }
  REQUIRE(result->result_as<std::string>() == std::optional<std::string>("kept"));
  REQUIRE(result->handler_name() == "keeper");
  REQUIRE(result->eventbus_name() == "MtOutlived");
  REQUIRE(event.event_path().size() == 1);
}

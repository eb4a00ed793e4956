// Warnings about slow handlers and slow events.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <regex>
#include <string>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
using Texts = std::vector<std::string>;

constexpr auto slow_handler = "Slow event handler";
constexpr auto slow_event = "Slow event processing";

/// The only line with the text; "" when there is none or more than one.
std::string only_line(const CapturedLog& log, const std::string& text) {
  std::string found;
  for (const auto& line : log.lines()) {
    if (line.find(text) == std::string::npos) continue;
    if (!found.empty()) return "";
    found = line;
  }
  return found;
}

/// The seconds that a warning names; -1 when it has another form.
double named_seconds(const std::string& line, const std::string& before) {
  std::smatch match;
  if (line.rfind(before, 0) != 0) return -1;
  const std::string rest = line.substr(before.size());
  if (!std::regex_match(rest, match, std::regex("([0-9]+\\.[0-9][0-9])s"))) return -1;
  return std::stod(match[1]);
}

}  // namespace

TEST_CASE("the first threshold that is set counts, zero disables", "[T-SLOW-1]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("SlowLevels", {.event_slow_timeout = 0s, .event_handler_slow_timeout = 10ms});
  const OpenAtEnd open(gate);
  const auto body = [&](const Job&) { gate.wait(); };
  bus.on<Job>(body, {.handler_name = "from_bus"});
  bus.on<Job>(body, {.handler_name = "never", .handler_slow_timeout = 0s});
  bus.on<Job>(body, {.handler_name = "much_later", .handler_slow_timeout = 100s});
  EventOptions options{.event_handler_concurrency = EventHandlerConcurrency::parallel};
  bus.emit(Job{}, options);
  CHECK(log.wait_for("from_bus#"));
  options.event_handler_slow_timeout = 0s;
  options.event_concurrency = EventConcurrency::parallel;
  bus.emit(Job{}, options);
  CHECK(gate.wait_for_arrivals(6));
  std::this_thread::sleep_for(60ms);
  CHECK(log.count("from_bus#") == 1);
  CHECK(log.count(slow_handler) == 1);
  CHECK(log.count(slow_event) == 0);

  // The event's own threshold beats the bus, in both kinds.
  options.event_handler_slow_timeout = 20ms;
  options.event_slow_timeout = 20ms;
  const auto by_event = bus.emit(Job{}, options);
  CHECK(log.wait_for(".on(" + event_label(by_event) + ", from_bus#"));
  CHECK(log.wait_for("Slow event processing: " + bus.label() + ".on(" + event_label(by_event)));
}

TEST_CASE("the handler warning names bus, event, handler and the time so far", "[T-SLOW-2][T-SLOW-3]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("SlowHandlerText", {.event_slow_timeout = 0s, .event_handler_slow_timeout = 30ms});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); }, {.handler_name = "sleepy"});
  const auto event = bus.emit(Job{});
  REQUIRE(log.wait_for(slow_handler));
  const auto result = event.event_results()[0];
  CHECK(outcome(result) == "started");
  const double seconds =
      named_seconds(only_line(log, slow_handler), "Slow event handler: " + bus.label() + ".on(" + event_label(event) +
                                                      ", " + handler_label(result) + ") still running after ");
  CHECK(seconds >= 0.03);
  CHECK(seconds < promptly);
}

TEST_CASE("the event warning names bus, event, running handlers and the time so far", "[T-SLOW-2][T-SLOW-3]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("SlowEventText", {.event_handler_concurrency = EventHandlerConcurrency::parallel,
                                 .event_slow_timeout = 0.2s,
                                 .event_handler_slow_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  bus.on<Job>([](const Job&) { return 1; });
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto event = bus.emit(Job{});
  REQUIRE(log.wait_for(slow_event));
  CHECK(event.event_status() == EventStatus::started);
  const double seconds =
      named_seconds(only_line(log, slow_event), "Slow event processing: " + bus.label() + ".on(" + event_label(event) +
                                                    ", 2 handlers) still running after ");
  CHECK(seconds >= 0.2);
  CHECK(seconds < 0.2 + promptly);
}

TEST_CASE("a warning fires once a run, and not for what is settled by then", "[T-SLOW-3]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("SlowOnce", {.event_slow_timeout = 10ms, .event_handler_slow_timeout = 10ms});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) gate.wait();
  });
  const auto slow = bus.emit(Job{1});
  CHECK(log.wait_for(slow_handler));
  CHECK(log.wait_for(slow_event));
  std::this_thread::sleep_for(100ms);
  CHECK(log.count(slow_handler) == 1);
  CHECK(log.count(slow_event) == 1);
  gate.open();
  slow.wait();

  const auto quick = bus.emit(Job{2}, {.event_slow_timeout = 0.1s, .event_handler_slow_timeout = 0.1s}).wait();
  std::this_thread::sleep_for(150ms);
  CHECK(log.count(event_label(quick)) == 0);
  CHECK(log.lines().size() == 2);
}

TEST_CASE("time in the queue is not slowness", "[T-SLOW-3]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("SlowQueued", {.event_slow_timeout = 0s, .event_handler_slow_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job& job) {
    if (job.n == 1) gate.wait();
  });
  bus.emit(Job{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Job{2}, {.event_slow_timeout = 0.2s, .event_handler_slow_timeout = 0.2s});
  std::this_thread::sleep_for(300ms);
  gate.open();
  queued.wait();
  CHECK(log.lines().empty());
}

TEST_CASE("the handler warning needs a longer handler timeout, the event warning does not", "[T-SLOW-4]") {
  Gate gate;
  const CapturedLog log;
  EventBus bus("SlowArmed", {.event_concurrency = EventConcurrency::parallel, .event_slow_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto at_the_limit = bus.emit(Job{}, {.event_handler_timeout = 30ms, .event_handler_slow_timeout = 30ms}).wait();
  const auto beyond = bus.emit(Job{}, {.event_timeout = 30ms, .event_handler_slow_timeout = 40ms}).wait();
  CHECK(outcomes(at_the_limit) == Texts{"EventHandlerTimeoutError"});
  CHECK(outcomes(beyond) == Texts{"EventHandlerAbortedError"});
  // A completed event is not slow any more, though its handler still runs.
  bus.emit(Job{}, {.event_timeout = 20ms, .event_slow_timeout = 60ms, .event_handler_slow_timeout = 0s}).wait();
  std::this_thread::sleep_for(100ms);
  CHECK(log.count(slow_handler) == 0);
  CHECK(log.count(slow_event) == 0);

  const auto armed = bus.emit(Job{}, {.event_handler_timeout = 0.5s, .event_handler_slow_timeout = 30ms});
  CHECK(log.wait_for(slow_handler));
  const auto event_only =
      bus.emit(Job{}, {.event_timeout = 0.4s, .event_slow_timeout = 30ms, .event_handler_slow_timeout = 0.4s});
  event_only.wait();
  armed.wait();
  CHECK(log.count(slow_handler) == 1);
  CHECK(log.count(slow_event) == 1);
}

TEST_CASE("handler and event warnings are independent", "[T-SLOW-5]") {
  struct Case {
    Seconds handler, event;
  };
  int n = 0;
  for (const auto& [handler, event_limit] : {Case{10ms, 0s}, Case{0s, 10ms}, Case{10ms, 10ms}, Case{0s, 0s}}) {
    Gate gate;
    const CapturedLog log;
    EventBus bus("SlowPair" + std::to_string(++n),
                 {.event_slow_timeout = event_limit, .event_handler_slow_timeout = handler});
    const OpenAtEnd open(gate);
    bus.on<Job>([&](const Job&) { return gate.wait(); });
    const auto event = bus.emit(Job{});
    CHECK(gate.wait_for_arrivals(1));
    if (handler > 0s) CHECK(log.wait_for(slow_handler));
    if (event_limit > 0s) CHECK(log.wait_for(slow_event));
    std::this_thread::sleep_for(30ms);
    gate.open();
    event.wait();
    CHECK(log.count(slow_handler) == (handler > 0s ? 1 : 0));
    CHECK(log.count(slow_event) == (event_limit > 0s ? 1 : 0));
    CHECK(outcomes(event) == Texts{"completed"});
    CHECK(event.event_results()[0].result_as<bool>() == true);
  }
}

TEST_CASE("waiting for the serial turn is not slowness of the handler", "[T-SLOW-6]") {
  Gate first, second;
  const CapturedLog log;
  EventBus bus("SlowTurn", {.event_slow_timeout = 0s, .event_handler_slow_timeout = 30ms});
  const OpenAtEnd open(first, second);
  bus.on<Job>([&](const Job&) { first.wait(); }, {.handler_name = "first", .handler_slow_timeout = 0s});
  bus.on<Job>([&](const Job&) { second.wait(); }, {.handler_name = "second"});
  const auto event = bus.emit(Job{});
  REQUIRE(first.wait_for_arrivals(1));
  std::this_thread::sleep_for(90ms);
  CHECK(log.count(slow_handler) == 0);
  first.open();
  REQUIRE(log.wait_for("second#"));
  CHECK(log.count("second#") == 1);
  const auto line = only_line(log, "second#");
  const double seconds = named_seconds(line, "Slow event handler: " + bus.label() + ".on(" + event_label(event) + ", " +
                                                 handler_label(result_of(event, "second")) + ") still running after ");
  CHECK(seconds >= 0.03);
}

TEST_CASE("warnings neither cancel nor delay, and come though the only worker is blocked", "[T-SLOW-7]") {
  Gate gate;
  std::atomic<bool> stopped{false};
  const CapturedLog log;
  EventBus bus("SlowBlocked", {.event_slow_timeout = 10ms,
                               .event_handler_slow_timeout = 10ms,
                               .executor = Executor(ExecutorOptions{.workers = 1})});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&, std::stop_token token) {
    gate.wait();
    stopped = token.stop_requested();
    return 4;
  });
  const auto event = bus.emit(Job{});
  CHECK(log.wait_for(slow_handler));
  CHECK(log.wait_for(slow_event));
  CHECK(outcomes(event) == Texts{"started"});
  gate.open();
  event.wait();
  CHECK_FALSE(stopped);
  CHECK(event.event_results()[0].result_as<int>() == 4);
}

TEST_CASE("what is logged has a level and goes to the sink from the threshold on", "[T-CNV-7]") {
  Gate gate;
  const auto noted = std::make_shared<Recorder>();
  EventBus bus("LogSink", {.event_slow_timeout = 0s, .warn_on_duplicate_handler_names = false});
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job& job) {
    if (job.n == 1) throw Error("logged");
  });
  bus.on<Job>([&](const Job& job) {
    if (job.n == 2) gate.wait();
  });
  CHECK(log_level() == LogLevel::warning);
  // The sink calls the library back, which would hang if a lock were held.
  set_log_sink([noted, ref = EventBusRef(bus)](LogLevel level, std::string_view text) {
    ref.is_idle();
    ref.event_history().events();
    const auto entry = ref.on("Unused", [](BaseEvent) {});
    ref.off(entry);
    noted->add((level == LogLevel::error     ? "error: "
                : level == LogLevel::warning ? "warning: "
                                             : "other: ") +
               std::string(text.substr(0, 18)));
  });
  bus.emit(Job{1}).wait();
  bus.emit(Job{2}, {.event_handler_slow_timeout = 10ms});
  const bool both = noted->wait_for_size(2);
  set_log_level(LogLevel::error);
  gate.open();
  bus.wait_until_idle();
  EventBus("LogSink");  // a name in use is a warning, below the threshold now
  bus.emit(Job{1}).wait();
  set_log_level(LogLevel::warning);
  set_log_sink({});
  CHECK(both);
  CHECK(noted->notes() ==
        Texts{"error: Error in event han", "warning: Slow event handler", "error: Error in event han"});
}

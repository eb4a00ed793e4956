// The end of a bus from inside its own handlers, and owners that go while work is open.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {};
struct Other {};

}  // namespace

TEST_CASE("destroy from inside a handler: it goes on, everything else ends", "[S-DST-11][S-DST-9]") {
  Gate gate;
  Recorder log;
  std::atomic<int> later_calls = 0;
  EventBus bus("DstInside");
  bus.on<Work>([&](const Work&, std::stop_token stop) -> std::string {
    gate.wait();
    bus.destroy();
    log.add(stop.stop_requested() ? "stopped" : "not stopped");
    log.add(thrown_by([&] { bus.emit(Other{}); }).substr(0, 22));
    return "own value";
  });
  bus.on<Work>([&](const Work&) { ++later_calls; });
  bus.on<Other>([&](const Other&) { ++later_calls; });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  auto queued = bus.emit(Other{});
  REQUIRE(gate.wait_for_arrivals(1));
  gate.open();
  event.wait();

  REQUIRE(log.notes() == Names{"not stopped", "EventBusDestroyedError"});
  REQUIRE(statuses(event) == Names{"completed", "error"});
  REQUIRE(event.event_results()[0].result_as<std::string>() == std::optional<std::string>("own value"));
  REQUIRE(event.event_results()[1].error_message() == "Cancelled pending handler due to event bus destroy");
  REQUIRE(queued.event_status() == EventStatus::pending);
  REQUIRE(later_calls == 0);
}

TEST_CASE("destroy from inside a handler aborts the handlers beside it", "[S-DST-11][S-DST-8]") {
  Gate gate;
  std::atomic<bool> stopped = false;
  EventBus bus("DstInsideParallel", {.event_handler_concurrency = EventHandlerConcurrency::parallel});
  bus.on<Work>([&](const Work&) {
    gate.wait();
    bus.destroy();
    return 1;
  });
  bus.on<Work>([&](const Work&, std::stop_token stop) {
    gate.open();
    stopped = wait_for_stop(stop);
    return 2;
  });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{}).wait();

  REQUIRE(statuses(event) == Names{"completed", "error"});
  REQUIRE(event.event_results()[1].error_type() == "EventHandlerAbortedError");
  REQUIRE(eventually([&] { return stopped.load(); }));
}

TEST_CASE("destroy from a coroutine handler and from a nested one", "[S-DST-11]") {
  Recorder log;
  EventBus bus("DstInsideNested");
  bus.on<Other>([&](const Other&) -> abxbus::task<int> {
    bus.destroy();
    log.add("nested");
    co_return 2;
  });
  bus.on<Work>([&](Event<Work> event) -> abxbus::task<int> {
    auto child = event.emit(Other{});
    co_await child.now_async();
    log.add("outer");
    co_return 1;
  });
  auto event = bus.emit(Work{}).wait();

  REQUIRE(log.notes() == Names{"nested", "outer"});
  REQUIRE(statuses(event) == Names{"completed"});
  REQUIRE(event.event_results()[0].result_as<int>() == std::optional<int>(1));
}

TEST_CASE("a unique_ptr to the bus reset inside its handler", "[S-DST-13][S-DST-11]") {
  for (int round = 0; round < 20; ++round) {
    Gate gate;
    Recorder log;
    std::unique_ptr<EventBus> owner = std::make_unique<EventBus>("DstUniqueReset");
    const EventBusRef ref = *owner;
    owner->on<Work>([&, text = std::string("captured and still there after the end")](const Work&) {
      gate.wait();
      owner.reset();
      log.add(text);
      return text.size();
    });
    OpenAtExit guard(gate);
    auto event = owner->emit(Work{});
    auto queued = owner->emit(Work{});
    gate.open();
    event.wait();

    REQUIRE(log.notes() == Names{"captured and still there after the end"});
    REQUIRE(statuses(event) == Names{"completed"});
    REQUIRE(queued.event_status() == EventStatus::pending);
    REQUIRE(ref.is_destroyed());
  }
}

TEST_CASE("the last shared_ptr to the bus dropped inside its handler", "[S-DST-13][S-MT-13]") {
  Gate gate;
  std::shared_ptr<EventBus> owner = std::make_shared<EventBus>("DstSharedDrop");
  const std::weak_ptr<EventBus> watch = owner;
  owner->on<Work>([&](const Work&) {
    gate.wait();
    owner.reset();
    return 1;
  });
  OpenAtExit guard(gate);
  auto event = owner->emit(Work{});
  gate.open();
  event.wait();

  REQUIRE(watch.expired());
  REQUIRE(statuses(event) == Names{"completed"});
}

TEST_CASE("the last shared_ptr dropped by a coroutine and by a parallel handler", "[S-DST-13]") {
  Gate gate;
  std::shared_ptr<EventBus> owner = std::make_shared<EventBus>(
      "DstSharedDropParallel", EventBusOptions{.event_handler_concurrency = EventHandlerConcurrency::parallel});
  std::atomic<bool> other_ended = false;
  owner->on<Work>([&](const Work&) -> abxbus::task<int> {
    gate.wait();
    owner.reset();
    co_return 1;
  });
  owner->on<Work>([&](const Work&, std::stop_token stop) {
    wait_for_stop(stop);
    other_ended = true;
    return 2;
  });
  OpenAtExit guard(gate);
  auto event = owner->emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(eventually([&] { return statuses(event) == Names{"started", "started"}; }));
  gate.open();
  event.wait();

  REQUIRE(statuses(event) == Names{"completed", "error"});
  REQUIRE(other_ended.load());
}

TEST_CASE("a handler that owns its bus: destroy breaks the cycle", "[S-DST-13]") {
  auto owner = std::make_shared<EventBus>("DstCycle");
  const std::weak_ptr<EventBus> watch = owner;
  const EventBusRef ref = *owner;
  owner->on<Work>([owner](const Work&) { return owner->name().size(); });
  ref.emit(Work{}).now();
  owner.reset();
  REQUIRE_FALSE(watch.expired());

  ref.destroy();
  REQUIRE(eventually([&] { return watch.expired(); }));
}

TEST_CASE("an owner that goes while work is queued and running leaves nothing behind", "[S-DST-13]") {
  const std::int64_t before = total_live_bytes();
  for (int round = 0; round < 20; ++round) {
    EventBus bus("DstOpenWork",
                 {.event_handler_concurrency = EventHandlerConcurrency::parallel, .max_history_size = std::nullopt});
    bus.on<Work>([](const Work&, std::stop_token stop) { wait_for_stop(stop); });
    bus.on<Work>([](const Work&) -> abxbus::task<std::string> { co_return std::string(100, 'x'); });
    for (int i = 0; i < 10; ++i) bus.emit(Work{});
  }
  REQUIRE(eventually([&] { return total_live_bytes() <= before; }));
}

TEST_CASE("an owner that is moved goes on; the last one ends the bus", "[S-DST-13]") {
  std::optional<EventBus> second;
  Event<Work> event;
  {
    EventBus first("DstMoved");
    first.on<Work>([](const Work&) { return 1; });
    second.emplace(std::move(first));
  }
  event = second->emit(Work{}).now();
  REQUIRE(statuses(event) == Names{"completed"});
  REQUIRE_FALSE(second->is_destroyed());
  const EventBusRef ref = *second;
  second.reset();
  REQUIRE(ref.is_destroyed());
}

TEST_CASE("a stop callback of a run cut short may call the library", "[S-MT-5][S-DST-6]") {
  Gate done;
  Recorder log;
  EventBus other("DstCallbackOther");
  EventBus bus("DstCallback");
  other.on<Other>([](const Other&) {});
  bus.on<Work>([&](const Work&, std::stop_token stop) {
    const std::stop_callback callback(stop, [&] {
      other.emit(Other{});  // accepted or dropped, but never a deadlock
      log.add(thrown_by([&] { bus.emit(Other{}); }).substr(0, 22));
      other.on("*", [](BaseEvent) {});
      done.open();
    });
    done.wait();
  });
  OpenAtExit guard(done);
  auto event = bus.emit(Work{});
  REQUIRE(done.wait_for_arrivals(1));

  bus.destroy();
  REQUIRE(log.wait_for_size(1));
  REQUIRE(log.notes() == Names{"EventBusDestroyedError"});
  REQUIRE(done.wait());
  REQUIRE(statuses(event) == Names{"error"});
  REQUIRE(completed(other.emit(Other{}).now()));
}

TEST_CASE("a stop callback at a timeout may emit and destroy", "[S-MT-5]") {
  Gate done;
  EventBus other("DstTimeoutCallbackOther");
  EventBus bus("DstTimeoutCallback");
  bus.on<Work>(
      [&](const Work&, std::stop_token stop) {
        const std::stop_callback callback(stop, [&] {
          bus.emit(Other{});
          other.destroy();
          done.open();
        });
        done.wait();
      },
      {.handler_timeout = 20ms});
  OpenAtExit guard(done);
  auto event = bus.emit(Work{}).wait();

  REQUIRE(event.event_results()[0].error_type() == "EventHandlerTimeoutError");
  REQUIRE(done.wait());
  REQUIRE(other.is_destroyed());
  REQUIRE(completed(bus.emit(Other{}).now()));
}

TEST_CASE("a stop callback on a caller's own token may emit", "[S-MT-5]") {
  Gate gate;
  std::atomic<int> handled = 0;
  EventBus bus("DstOwnToken");
  EventBus other("DstOwnTokenOther");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  other.on<Other>([&](const Other&) { ++handled; });
  std::stop_source source;
  const std::stop_callback callback(source.get_token(), [&] { other.emit(Other{}).now(); });
  auto event = bus.emit(Work{});
  Caller call([event, token = source.get_token()] { event.wait({.stop_token = token}); });
  OpenAtExit guard(gate);
  REQUIRE(call.still_blocked_after(20ms));

  source.request_stop();
  REQUIRE(call.finishes());
  REQUIRE(call.error() == "OperationCancelled");
  REQUIRE(handled == 1);
}

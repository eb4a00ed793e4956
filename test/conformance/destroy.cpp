// destroy(): terminal at once, what it clears, and what a destroyed bus still answers.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Work {};
struct Other {};

bool registered(const EventBusRef& bus) {
  const auto all = EventBus::all_instances();
  return std::find(all.begin(), all.end(), bus) != all.end();
}

/// The operation named by the error that a call throws; the error's other members must be those of the bus.
template <class F>
std::string refused_operation(const EventBusRef& bus, F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const EventBusDestroyedError& error) {
    if (std::string_view(error.what()) != bus.label() + " has been destroyed and cannot be used again")
      return std::string("message: ") + error.what();
    if (std::string_view(error.eventbus_name()) != bus.name()) return "wrong name";
    if (std::string_view(error.eventbus_id()) != bus.id()) return "wrong id";
    if (std::string_view(error.eventbus_label()) != bus.label()) return "wrong label";
    return std::string(error.operation());
  } catch (...) {
    return "another error";
  }
  return "accepted";
}

}  // namespace

TEST_CASE("destroy returns at once and stops what runs", "[S-DST-1][S-DST-8]") {
  static_assert(noexcept(std::declval<EventBus&>().destroy()));
  Gate gate;
  std::atomic<bool> stopped = false;
  std::atomic<bool> ended = false;
  EventBus bus("DstAtOnce");
  bus.on<Work>([&](const Work&, std::stop_token stop) {
    gate.wait();
    stopped = wait_for_stop(stop);
    ended = true;
  });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));

  const double seconds = duration_of([&] { bus.destroy(); });
  REQUIRE(seconds < 2.0);
  REQUIRE_FALSE(ended.load());
  REQUIRE(bus.is_destroyed());
  REQUIRE(bus.expired());
  REQUIRE(statuses(event) == Names{"error"});
  REQUIRE(event.event_results()[0].error_type() == "EventHandlerAbortedError");
  gate.open();
  REQUIRE(eventually([&] { return ended.load(); }));
  REQUIRE(stopped.load());
}

TEST_CASE("the owner's destructor waits for handlers that execute on", "[S-DST-1]") {
  std::atomic<bool> started = false;
  std::atomic<bool> ended = false;
  {
    EventBus bus("DstWaits");
    bus.on<Work>([&](const Work&, std::stop_token stop) {
      started = true;
      wait_for_stop(stop);
      std::this_thread::sleep_for(60ms);
      ended = true;
    });
    bus.emit(Work{});
    REQUIRE(eventually([&] { return started.load(); }));
  }
  REQUIRE(ended.load());
}

TEST_CASE("the destructor waits no longer than destroy_grace", "[S-DST-1]") {
  for (const auto grace : {0ms, 60ms}) {
    Gate gate;
    std::atomic<bool> ended = false;
    const CapturedLog log;
    double seconds = 0;
    {
      std::optional<EventBus> bus(std::in_place, "DstGrace", EventBusOptions{.destroy_grace = grace});
      bus->on<Work>([&](const Work&) {
        gate.wait();
        ended = true;
      });
      bus->emit(Work{});
      const bool arrived = gate.wait_for_arrivals(1);
      seconds = duration_of([&] { bus.reset(); });
      gate.open();
      REQUIRE(arrived);
    }
    REQUIRE(seconds >= std::chrono::duration<double>(grace).count());
    REQUIRE(seconds < 4.0);
    REQUIRE(eventually([&] { return ended.load(); }));
  }
}

TEST_CASE("destroy with clear empties the bus", "[S-DST-2][S-DST-15]") {
  EventBus bus("DstPinnedA");
  bus.on<Work>([](const Work&) {});
  bus.emit(Work{}).now();
  REQUIRE(registered(bus));

  bus.destroy(true);
  REQUIRE(bus.handlers().empty());
  REQUIRE(bus.handlers_by_key().empty());
  REQUIRE(bus.event_history().size() == 0);
  REQUIRE(bus.pending_event_queue().empty());
  REQUIRE_FALSE(registered(bus));
  for (const std::string& text : {thrown_by([&] { bus.on<Work>([](const Work&) {}); }),
                                  thrown_by([&] { bus.emit(Work{}); }), thrown_by([&] { bus.find<Work>(); })}) {
    REQUIRE_THAT(text, abxbus::test::contains("EventBusDestroyedError"));
    REQUIRE_THAT(text, abxbus::test::contains("destroyed"));
    REQUIRE_THAT(text, abxbus::test::contains(bus.label()));
  }
}

TEST_CASE("destroy without clear keeps handlers and history readable", "[S-DST-2][S-DST-3]") {
  EventBus bus("DstKeeps");
  const EventHandler handler = bus.on<Work>([](const Work&) { return 1; });
  auto event = bus.emit(Work{}).now();

  bus.destroy(false);
  REQUIRE(bus.is_destroyed());
  REQUIRE_FALSE(registered(bus));
  REQUIRE(bus.handlers().size() == 1);
  REQUIRE(bus.handlers()[0] == handler);
  REQUIRE(bus.event_history().size() == 1);
  REQUIRE(bus.event_history().has_event(event.event_id()));
  REQUIRE(bus.pending_event_queue().empty());
  REQUIRE(thrown_by([&] { bus.emit(Work{}); }).starts_with("EventBusDestroyedError"));

  bus.destroy(false);
  REQUIRE(bus.handlers().size() == 1);
  REQUIRE(bus.event_history().size() == 1);
  bus.destroy(true);
  REQUIRE(bus.handlers().empty());
  REQUIRE(bus.event_history().size() == 0);
  bus.destroy(true);
  bus.destroy(false);
  REQUIRE(bus.is_destroyed());
  REQUIRE(statuses(event) == Names{"completed"});
}

TEST_CASE("a pending find ends without a match", "[S-DST-4][S-DST-15]") {
  std::atomic<int> found = -1;
  EventBus bus("DstPinnedB");
  bus.on<Work>([](const Work&) {});
  bus.emit(Work{}).now();
  Caller typed([&found, ref = EventBusRef(bus)] { found = ref.find<Other>({.past = false, .future = true}) ? 1 : 0; });
  REQUIRE(eventually([&] { return bus.find_waiter_count() == 1; }));

  bus.destroy(false);
  REQUIRE(typed.finishes());
  REQUIRE(typed.error().empty());
  REQUIRE(found == 0);
  REQUIRE(bus.handlers().size() == 1);
  REQUIRE(bus.event_history().size() == 1);
}

TEST_CASE("a pending find with a limit ends without a match at once", "[S-DST-4]") {
  std::atomic<int> found = -1;
  EventBus bus("DstFindLimit");
  Caller call([&found, ref = EventBusRef(bus)] { found = ref.find("*", {.past = false, .future = 60s}) ? 1 : 0; });
  REQUIRE(eventually([&] { return bus.find_waiter_count() == 1; }));
  bus.destroy();
  REQUIRE(call.finishes());
  REQUIRE(found == 0);
}

TEST_CASE("threads that wait for idle are released with true", "[S-DST-4]") {
  Gate gate;
  std::atomic<int> idle = 0;
  EventBus bus("DstIdle");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  bus.emit(Work{});
  const auto wait = [&idle, ref = EventBusRef(bus)] {
    if (ref.wait_until_idle()) ++idle;
  };
  Caller first(wait);
  Caller second(wait);
  OpenAtExit guard(gate);
  REQUIRE(gate.wait_for_arrivals(1));
  REQUIRE(first.still_blocked_after(30ms));

  bus.destroy();
  REQUIRE(first.finishes());
  REQUIRE(second.finishes());
  REQUIRE(first.error().empty());
  REQUIRE(second.error().empty());
  REQUIRE(idle == 2);
}

TEST_CASE("the name is free and the old bus keeps its own", "[S-DST-4]") {
  const CapturedLog log;
  EventBus bus("DstName");
  const std::string name = bus.name();
  const std::string id = bus.id();
  const std::string label = bus.label();
  bus.destroy();

  EventBus successor("DstName");
  REQUIRE(successor.name() == "DstName");
  REQUIRE(log.lines().empty());
  REQUIRE(bus.name() == name);
  REQUIRE(bus.id() == id);
  REQUIRE(bus.label() == label);
  REQUIRE(registered(successor));
}

TEST_CASE("what a destroyed bus refuses", "[S-DST-5]") {
  EventBus bus("DstRefuses");
  const EventHandler handler = bus.on<Work>([](const Work&) {});
  const auto fresh = make_event(Work{});
  bus.destroy();

  REQUIRE(refused_operation(bus, [&] { bus.on<Work>([](const Work&) {}); }) == "on");
  REQUIRE(refused_operation(bus, [&] { bus.on("*", [](BaseEvent) {}); }) == "on");
  REQUIRE(refused_operation(bus, [&] { bus.off<Work>(); }) == "off");
  REQUIRE(refused_operation(bus, [&] { bus.off("*"); }) == "off");
  REQUIRE(refused_operation(bus, [&] { bus.off(handler); }) == "off");
  REQUIRE(refused_operation(bus, [&] { bus.emit(Work{}); }) == "emit");
  REQUIRE(refused_operation(bus, [&] { bus.emit(fresh); }) == "emit");
  REQUIRE(refused_operation(bus, [&] { bus.find<Work>(); }) == "find");
  REQUIRE(refused_operation(bus, [&] { bus.find("*", {.past = false, .future = true}); }) == "find");
  REQUIRE(refused_operation(bus, [&] { bus.wait_until_idle(); }) == "wait_until_idle");
  REQUIRE(refused_operation(bus, [&] { bus.wait_until_idle(1s); }) == "wait_until_idle");
  REQUIRE(thrown_by([&] { bus.dispatch(Work{}); }).starts_with("EventBusDestroyedError"));

  REQUIRE(fresh.event_path().empty());
  REQUIRE(fresh.event_pending_bus_count() == 0);
  REQUIRE(fresh.event_status() == EventStatus::pending);
}

TEST_CASE("what a destroyed bus still answers", "[S-DST-5]") {
  EventBus bus("DstAnswers");
  bus.on<Work>([](const Work&) {});
  bus.emit(Work{}).now();
  bus.destroy();

  REQUIRE(bus.is_destroyed());
  REQUIRE(bus.is_idle_and_queue_empty());
  REQUIRE(bus.is_idle());
  REQUIRE(bus.label().starts_with("DstAnswers#"));
  REQUIRE(bus.handlers().empty());
  REQUIRE(bus.handler_count() == 0);
  REQUIRE(bus.event_history().events().empty());
  REQUIRE(bus.events_pending().empty());
  REQUIRE(bus.events_started().empty());
  REQUIRE(bus.events_completed().empty());
  REQUIRE(bus.find_waiter_count() == 0);
  REQUIRE(bus.options().event_concurrency == EventConcurrency::bus_serial);
}

TEST_CASE("a reference outlives the owner and refuses", "[S-DST-5]") {
  std::optional<EventBusRef> ref;
  {
    EventBus bus("DstReference");
    ref.emplace(bus);
    REQUIRE_FALSE(ref->expired());
  }
  REQUIRE(ref->expired());
  REQUIRE(ref->name() == "DstReference");
  REQUIRE(refused_operation(*ref, [&] { ref->emit(Work{}); }) == "emit");
  REQUIRE(ref->is_idle_and_queue_empty());
}

TEST_CASE("a handler that still runs gets the error, not a silent no-op", "[S-DST-6][S-DST-15]") {
  Gate gate;
  Recorder log;
  EventBus bus("DstPinnedC");
  bus.on<Work>([&](Event<Work> event) {
    gate.wait();
    log.add(refused_operation(bus, [&] { bus.emit(Other{}); }));
    log.add(thrown_by([&] { event.emit(Other{}); }).substr(0, 22));
  });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));

  REQUIRE(duration_of([&] { bus.destroy(false); }) < 2.0);
  REQUIRE(thrown_by([&] { bus.emit(Work{}); }).starts_with("EventBusDestroyedError"));
  REQUIRE(bus.event_history().size() == 1);
  gate.open();
  REQUIRE(log.wait_for_size(2));
  REQUIRE(log.notes() == Names{"emit", "EventBusDestroyedError"});
  REQUIRE(event.event_children().empty());
  REQUIRE(bus.event_history().size() == 1);
}

TEST_CASE("source and target share a callable; the target works on", "[S-DST-15]") {
  std::atomic<int> calls = 0;
  const auto shared = std::make_shared<std::function<void(const Work&)>>([&](const Work&) { ++calls; });
  EventBus target("DstPinnedDTarget");
  EventBus source("DstPinnedDSource");
  source.on<Work>(shared);
  target.on<Work>(shared);
  source.on("*", target.forwarder());

  source.emit(Work{}).now();
  REQUIRE(calls == 2);
  source.destroy();
  target.emit(Work{}).now();
  REQUIRE(calls == 3);
  REQUIRE_FALSE(target.is_destroyed());
}

// What destroy does to running and waiting handlers, waiting callers, and the owner's destructor.

#include "support/catch.hpp"
#include "support/results.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace abxbus;
using namespace testing;

namespace {

struct Job {
  int n = 0;
};
struct Child {};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("destroy does not wait for running handlers, and they see it", "[T-CAN-30]") {
  Gate gate;
  Recorder seen;
  EventBus bus("DestroyRunning");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Event<Job>& event) {
    gate.wait();
    seen.add(error_message(thrown_by([&] { bus.emit(Child{}); })));
    seen.add(error_name(thrown_by([&] { event.emit(Child{}); })));
    seen.add(error_name(thrown_by([&] { bus.on<Job>([](const Job&) {}); })));
    seen.add(error_name(thrown_by([&] { bus.wait_until_idle(); })));
  });
  bus.emit(Job{});
  REQUIRE(gate.wait_for_arrivals(1));
  const Stopwatch watch;
  bus.destroy();
  CHECK(watch.seconds() < 0.5);
  CHECK(bus.is_destroyed());
  const std::string text = bus.label() + " has been destroyed and cannot be used again";
  CHECK(error_message(thrown_by([&] { bus.emit(Job{}); })) == text);
  CHECK(error_name(thrown_by([&] { bus.off<Job>(); })) == "EventBusDestroyedError");
  CHECK(error_name(thrown_by([&] { bus.find<Job>(); })) == "EventBusDestroyedError");
  gate.open();
  REQUIRE(seen.wait_for_size(4));
  CHECK(seen.notes() == Texts{text, "EventBusDestroyedError", "EventBusDestroyedError", "EventBusDestroyedError"});
}

TEST_CASE("destroy aborts what runs, cancels what waits, drops what is queued", "[T-CAN-31]") {
  Gate gate;
  std::atomic<int> never{0};
  std::atomic<bool> stopped{false};
  EventBus bus("DestroySettles", {.event_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job&) { return 1; });
  bus.on<Job>([&](const Job&, std::stop_token token) {
    gate.wait();
    stopped = wait_until_stopped(token);
  });
  bus.on<Job>([&](const Job&) { ++never; });
  const auto running = bus.emit(Job{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Job{2});
  bus.destroy();
  CHECK(outcomes(running) == Texts{"completed", "EventHandlerAbortedError", "EventHandlerCancelledError"});
  CHECK(running.event_results()[0].result_as<int>() == 1);
  CHECK(running.event_results()[1].error_message() == "Aborted running handler due to event bus destroy");
  CHECK(running.event_results()[2].error_message() == "Cancelled pending handler due to event bus destroy");
  CHECK(running.event_status() == EventStatus::completed);
  CHECK(queued.event_status() == EventStatus::pending);
  CHECK(queued.event_pending_bus_count() == 0);
  CHECK(queued.event_results().empty());
  gate.open();
  CHECK(eventually([&] { return stopped.load(); }));
  CHECK(never == 0);
}

TEST_CASE("destroy releases every caller that waits", "[T-CAN-31]") {
  Gate gate;
  EventBus bus("DestroyWaiters", {.event_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { gate.wait(); });
  const auto running = bus.emit(Job{1});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto queued = bus.emit(Job{2});
  Recorder released;
  {
    const auto note = [&](const std::string& name, const auto& call) {
      released.add(name + " " + error_name(thrown_by(call)));
    };
    const std::jthread a([&] { note("running", [&] { running.wait(); }); });
    const std::jthread b([&] { note("queued", [&] { queued.wait(); }); });
    const std::jthread c([&] {
      const auto found = bus.find<Child>({.past = false, .future = true});
      released.add(found ? "found" : "nothing found");
    });
    CHECK(eventually([&] { return bus.find_waiter_count() == 1; }));
    std::this_thread::sleep_for(30ms);
    CHECK(released.size() == 0);
    bus.destroy();
    CHECK(released.wait_for_size(3));
  }
  CHECK(released.contains("running "));
  CHECK(released.contains("queued EventBusDestroyedError"));
  CHECK(released.contains("nothing found"));
  // Later calls find the same.
  CHECK(error_name(thrown_by([&] { queued.wait(); })) == "EventBusDestroyedError");
  CHECK(error_name(thrown_by([&] { queued.now(); })) == "EventBusDestroyedError");
  CHECK(error_name(thrown_by([&] { queued.event_results_list<int>(); })) == "EventBusDestroyedError");
}

TEST_CASE("destroy from a handler spares that handler", "[T-CAN-31]") {
  std::atomic<int> never{0};
  std::atomic<bool> stopped{false};
  Gate gate;
  EventBus bus("DestroyInside");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&, std::stop_token token) {
    gate.wait();
    bus.destroy(false);
    stopped = token.stop_requested();
    return 8;
  });
  bus.on<Job>([&](const Job&) { ++never; });
  const auto event = bus.emit(Job{});
  const auto queued = bus.emit(Job{});
  gate.open();
  event.wait({.timeout = patience});
  CHECK_FALSE(stopped);
  CHECK(outcomes(event) == Texts{"completed", "EventHandlerCancelledError"});
  CHECK(event.event_results()[0].result_as<int>() == 8);
  CHECK(event.event_results()[1].error_message() == "Cancelled pending handler due to event bus destroy");
  CHECK(queued.event_status() == EventStatus::pending);
  CHECK(never == 0);
}

TEST_CASE("destroy(false) keeps handlers and history", "[T-CAN-32]") {
  Gate gate;
  EventBus bus("DestroyKeeps", {.event_timeout = 0s});
  const OpenAtEnd open(gate);
  bus.on<Job>([](const Job& job) { return job.n; });
  bus.on<Job>([&](const Job& job) {
    if (job.n == 2) gate.wait();
  });
  const auto before = bus.emit(Job{1}).wait();
  const auto completed_at = before.event_completed_at();
  const auto running = bus.emit(Job{2});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.destroy(false);
  CHECK(bus.handlers().size() == 2);
  CHECK(bus.event_history().size() == 2);
  CHECK(bus.event_history().has_event(running.event_id()));
  CHECK(outcomes(before) == Texts{"completed", "completed"});
  CHECK(before.event_completed_at() == completed_at);
  CHECK(outcomes(running) == Texts{"completed", "EventHandlerAbortedError"});
  bus.destroy();
  CHECK(bus.handlers().empty());
  CHECK(bus.event_history().size() == 0);
}

TEST_CASE("the owner's destructor waits for handlers that still execute", "[T-CAN-33]") {
  Gate gate;
  std::atomic<bool> left{false};
  std::jthread opener;
  {
    EventBus bus("DestructorWaits", {.event_timeout = 20ms});
    bus.on<Job>([&](const Job&) {
      gate.wait();
      std::this_thread::sleep_for(20ms);
      left = true;
    });
    bus.emit(Job{}).wait();
    REQUIRE(gate.wait_for_arrivals(1));
    opener = std::jthread([&] {
      std::this_thread::sleep_for(50ms);
      gate.open();
    });
  }
  CHECK(left);
}

TEST_CASE("the destructor's wait is bounded by destroy_grace, and says so", "[T-CAN-33]") {
  const auto gate = std::make_shared<Gate>();
  const auto left = std::make_shared<std::atomic<bool>>(false);
  const auto leave_behind = [&](const std::string& name, Seconds grace) {
    EventBus bus(name, {.event_timeout = 20ms, .destroy_grace = grace});
    bus.on<Job>([gate, left](const Job&) {
      gate->wait();
      *left = true;
    });
    bus.emit(Job{}).wait();
    return Stopwatch();
  };
  const CapturedLog log;
  const double bounded = leave_behind("DestructorBounded", 60ms).seconds();
  CHECK(bounded >= 0.06 - clock_slack);
  CHECK(bounded < promptly);
  CHECK(log.lines().size() == 1);
  const double none = leave_behind("DestructorNone", 0s).seconds();
  CHECK(none < 0.5);
  CHECK_FALSE(*left);
  gate->open();
  CHECK(eventually([&] { return left->load(); }));
}

TEST_CASE("dropping a reference ends nothing", "[T-CAN-33]") {
  Gate gate;
  EventBus bus("RefDropped");
  const OpenAtEnd open(gate);
  bus.on<Job>([&](const Job&) { return gate.wait(); });
  const auto event = bus.emit(Job{});
  REQUIRE(gate.wait_for_arrivals(1));
  {
    std::optional<EventBusRef> ref = bus;
    const EventBusRef copy = *ref;
    ref.reset();
  }
  CHECK_FALSE(bus.is_destroyed());
  gate.open();
  event.wait();
  CHECK(outcomes(event) == Texts{"completed"});
}

TEST_CASE("the destructor does not wait for the handler that calls it", "[T-CAN-33]") {
  Gate gate;
  Recorder seen;
  auto owner = std::make_unique<EventBus>("DestructorInside");
  owner->on<Job>([&](const Job&) {
    gate.wait();
    const Stopwatch watch;
    owner.reset();
    seen.add(watch.seconds() < 4 ? "at once" : "waited");
    return 1;
  });
  const auto event = owner->emit(Job{});
  gate.open();
  event.wait({.timeout = patience});
  CHECK(seen.wait_for_size(1));
  CHECK(seen.notes() == Texts{"at once"});
  CHECK(outcomes(event) == Texts{"completed"});
}

// Names in use, the registry of live buses, threads, domains: S-BUS-10 to S-BUS-17.

#include "support/catch.hpp"
#include "support/stress.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

struct RegistryEvent {};

std::vector<std::string> names_in(const Domain& domain) {
  std::vector<std::string> names;
  for (const EventBusRef& bus : EventBus::all_instances(domain)) names.push_back(bus.name());
  std::sort(names.begin(), names.end());
  return names;
}

bool listed(const EventBusRef& bus, const Domain& domain = Domain::default_domain()) {
  const std::vector<EventBusRef> buses = EventBus::all_instances(domain);
  return std::find(buses.begin(), buses.end(), bus) != buses.end();
}

std::size_t thread_count() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

TEST_CASE("a second bus of the same name is renamed after its id, with one warning", "[S-BUS-10]") {
  const CapturedLog log;
  EventBus first("Twin");
  EventBus second("Twin");
  CHECK(first.name() == "Twin");
  CHECK(second.name() == "Twin_" + second.id().substr(28));
  CHECK(second.label() == second.name() + "#" + second.id().substr(32));
  CHECK(log.count("EventBus with name \"Twin\" already exists") == 1);
  CHECK(log.count(second.name()) == 1);
  CHECK(log.lines().size() == 1);
}

TEST_CASE("a new name that is taken as well is numbered", "[S-BUS-10]") {
  const CapturedLog log;
  EventBus plain("Numbered");
  EventBus taken("Numbered_abcdef12");
  EventBus second("Numbered", {.id = "0196a1b2-c3d4-7e5f-8a9b-0c1dabcdef12"});
  EventBus third("Numbered", {.id = "0196a1b2-c3d4-7e5f-8a9b-0c1eabcdef12"});
  CHECK(plain.name() == "Numbered");
  CHECK(taken.name() == "Numbered_abcdef12");
  CHECK(second.name() == "Numbered_abcdef12_2");
  CHECK(third.name() == "Numbered_abcdef12_3");
}

TEST_CASE("buses that asked for the same name are independent", "[S-BUS-10]") {
  const CapturedLog log;
  std::atomic<int> calls = 0;
  EventBus first("Independent");
  EventBus second("Independent");
  first.on<RegistryEvent>([&](const RegistryEvent&) { ++calls; });
  CHECK(first.id() != second.id());
  CHECK(first.label() != second.label());
  CHECK(second.handler_count() == 0);
  const auto event = second.emit(RegistryEvent{});
  event.wait();
  CHECK(calls == 0);
  CHECK(first.event_history().size() == 0);
  CHECK(second.event_history().size() == 1);
  CHECK(event.event_path() == std::vector<std::string>{second.label()});
  first.emit(RegistryEvent{}).wait();
  CHECK(calls == 1);
}

TEST_CASE("a name is free again when its bus is destroyed or gone", "[S-BUS-11]") {
  const CapturedLog log;
  EventBus destroyed("Reused");
  destroyed.destroy();
  {
    EventBus scoped("Reused");
    CHECK(scoped.name() == "Reused");
  }
  EventBus assigned("Reused");
  CHECK(assigned.name() == "Reused");
  assigned = EventBus("ReusedOther");
  EventBus last("Reused");
  CHECK(last.name() == "Reused");
  CHECK(destroyed.name() == "Reused");
  CHECK(log.lines().empty());
}

TEST_CASE("moving a bus keeps its name taken", "[S-BUS-11]") {
  const CapturedLog log;
  EventBus from("MovedName");
  const EventBusRef reference = from;
  EventBus to(std::move(from));
  CHECK(reference == to);
  CHECK_FALSE(reference.expired());
  EventBus other("MovedName");
  CHECK(other.name() != "MovedName");
}

TEST_CASE("of buses made at once with one name exactly one gets it", "[S-BUS-12]") {
  const CapturedLog log;
  constexpr std::size_t count = 8;
  for (int round = 0; round < 20; ++round) {
    const Domain domain;
    std::vector<std::optional<EventBus>> buses(count);
    std::barrier start(static_cast<std::ptrdiff_t>(count));
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        buses[i].emplace("Contested", EventBusOptions{.domain = domain});
      });
    }
    threads.clear();
    const std::vector<std::string> names = names_in(domain);
    REQUIRE(names.size() == count);
    CHECK(std::count(names.begin(), names.end(), "Contested") == 1);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == count);
  }
  CHECK(log.count("EventBus with name \"Contested\" already exists") == static_cast<int>(20 * (count - 1)));
}

TEST_CASE("the registry lists live buses and drops destroyed ones at once", "[S-BUS-14]") {
  const Domain domain;
  CHECK(EventBus::all_instances(domain).empty());
  EventBus one("ListedOne", {.domain = domain});
  auto two = std::make_unique<EventBus>("ListedTwo", EventBusOptions{.domain = domain});
  CHECK(names_in(domain) == std::vector<std::string>{"ListedOne", "ListedTwo"});
  CHECK(listed(one, domain));
  CHECK(listed(*two, domain));
  one.destroy(false);
  CHECK_FALSE(listed(one, domain));
  CHECK(names_in(domain) == std::vector<std::string>{"ListedTwo"});
  two.reset();
  CHECK(EventBus::all_instances(domain).empty());
}

TEST_CASE("the registry keeps no bus alive", "[S-BUS-14]") {
  const Domain domain;
  std::vector<EventBusRef> snapshot;
  {
    EventBus bus("Unowned", {.domain = domain});
    bus.emit(RegistryEvent{}).wait();
    snapshot = EventBus::all_instances(domain);
    REQUIRE(snapshot.size() == 1);
    CHECK_FALSE(snapshot[0].expired());
  }
  CHECK(snapshot[0].expired());
  CHECK(snapshot[0].name() == "Unowned");
  CHECK_THROWS_AS(snapshot[0].emit(RegistryEvent{}), EventBusDestroyedError);
  CHECK(EventBus::all_instances(domain).empty());
}

TEST_CASE("buses may come and go while the registry is iterated", "[S-BUS-14]") {
  const Domain domain;
  std::vector<EventBus> buses;
  for (int i = 0; i < 5; ++i) buses.emplace_back("Iterated" + std::to_string(i), EventBusOptions{.domain = domain});
  int seen = 0;
  for (const EventBusRef& bus : EventBus::all_instances(domain)) {
    ++seen;
    bus.destroy();
    buses.emplace_back("Added" + std::to_string(seen), EventBusOptions{.domain = domain});
  }
  CHECK(seen == 5);
  CHECK(names_in(domain) == std::vector<std::string>{"Added1", "Added2", "Added3", "Added4", "Added5"});
}

TEST_CASE("constructing buses and registering handlers starts no thread", "[S-BUS-15]") {
  const std::size_t before = thread_count();
  std::vector<EventBus> buses;
  for (int i = 0; i < 40; ++i) {
    buses.emplace_back("", EventBusOptions{.executor = Executor({.workers = 2})});
    buses.back().on<RegistryEvent>([](const RegistryEvent&) { return 7; });
  }
  CHECK(thread_count() < before + 20);
  // The first emit is all it takes.
  CHECK(buses[0].emit(RegistryEvent{}).wait().event_results()[0].result_as<int>() == 7);
}

TEST_CASE("ten thousand short-lived buses need a bounded number of threads", "[S-BUS-16]") {
  const std::size_t before = thread_count();
  std::size_t most = before;
  std::atomic<std::size_t> calls = 0;
  const std::size_t rounds = abxbus::test::stress_count(10'000);
  for (std::size_t i = 0; i < rounds; ++i) {
    EventBus bus;
    bus.on<RegistryEvent>([&](const RegistryEvent&) { ++calls; });
    bus.emit(RegistryEvent{}).wait();
    if (i % 500 == 0) most = std::max(most, thread_count());
  }
  CHECK(calls == rounds);
  CHECK(most < before + std::thread::hardware_concurrency() + 32);
}

TEST_CASE("many buses alive at once share the threads", "[S-BUS-16]") {
  EventBus warm("SharedPool");
  warm.emit(RegistryEvent{}).wait();
  const std::size_t before = thread_count();
  std::vector<EventBus> buses;
  std::vector<BaseEvent> events;
  for (int i = 0; i < 300; ++i) {
    buses.emplace_back();
    buses.back().on<RegistryEvent>([](const RegistryEvent&) {});
    events.push_back(buses.back().emit(RegistryEvent{}));
  }
  const std::size_t during = thread_count();
  for (const BaseEvent& event : events) event.wait();
  CHECK(during < before + std::thread::hardware_concurrency() + 32);
}

TEST_CASE("domains have names and registry of their own", "[S-BUS-17]") {
  const CapturedLog log;
  const Domain domain;
  EventBus outside("Scoped");
  EventBus inside("Scoped", {.domain = domain});
  EventBus second("Scoped", {.domain = domain});
  CHECK(outside.name() == "Scoped");
  CHECK(inside.name() == "Scoped");
  CHECK(second.name() == "Scoped_" + second.id().substr(28));
  CHECK(listed(outside));
  CHECK_FALSE(listed(inside));
  CHECK(EventBus::all_instances(domain).size() == 2);
  CHECK_FALSE(listed(outside, domain));
  CHECK(EventBus::all_instances(Domain()).empty());
}

TEST_CASE("buses of one domain share its global lock", "[S-BUS-17]") {
  const Domain domain;
  Meeting meeting;
  EventBus a("DomainLockA", {.event_concurrency = EventConcurrency::global_serial, .domain = domain});
  EventBus b("DomainLockB", {.event_concurrency = EventConcurrency::global_serial, .domain = domain});
  for (EventBus* bus : {&a, &b}) bus->on<RegistryEvent>([&](const RegistryEvent&) { meeting.meet(2, 5ms); });
  std::vector<BaseEvent> events;
  for (int i = 0; i < 5; ++i) {
    events.push_back(a.emit(RegistryEvent{}));
    events.push_back(b.emit(RegistryEvent{}));
  }
  for (const BaseEvent& event : events) event.wait();
  CHECK(meeting.max() == 1);
}

TEST_CASE("buses of different domains do not wait for each other's global lock", "[S-BUS-17]") {
  Gate gate;
  EventBus held("ForeignLockA", {.event_concurrency = EventConcurrency::global_serial, .domain = Domain()});
  EventBus free("ForeignLockB", {.event_concurrency = EventConcurrency::global_serial, .domain = Domain()});
  EventBus standard("ForeignLockC", {.event_concurrency = EventConcurrency::global_serial});
  const OpenAtExit open(gate);
  held.on<RegistryEvent>([&](const RegistryEvent&) { gate.wait(); });
  const auto blocked = held.emit(RegistryEvent{});
  REQUIRE(gate.wait_for_arrivals(1));
  CHECK(free.emit(RegistryEvent{}).wait({.timeout = patience}).event_status() == EventStatus::completed);
  CHECK(standard.emit(RegistryEvent{}).wait({.timeout = patience}).event_status() == EventStatus::completed);
  CHECK(blocked.event_status() == EventStatus::started);
  gate.open();
  blocked.wait();
}

}  // namespace

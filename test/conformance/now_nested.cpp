// now() inside handlers: the awaited event runs at once, under the lock of its caller.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace abxbus;
using namespace testing;

using Names = std::vector<std::string>;

struct Root {};
struct Child {
  std::string name = "child";
};
struct Grandchild {};
struct Sibling {
  std::string name = "sibling";
};

void note_names(const EventBusRef& bus, Recorder& log) {
  bus.on<Child>([&log](const Child& child) { log.add(child.name); });
  bus.on<Sibling>([&log](const Sibling& sibling) { log.add(sibling.name); });
}

}  // namespace

TEST_CASE("only the awaited child moves", "[S-JMP-8]") {
  Gate queued;
  Recorder log;
  EventBus bus("NestedOnlyOne");
  note_names(bus, log);
  bus.on<Root>([&](Event<Root> event) {
    log.add("E1_start");
    queued.wait();
    event.emit(Child{"A"});
    auto second = event.emit(Child{"B"});
    event.emit(Child{"C"});
    second.now();
    log.add("E1_end");
  });
  OpenAtExit guard(queued);

  bus.emit(Root{});
  REQUIRE(queued.wait_for_arrivals(1));
  bus.emit(Sibling{"E2"});
  bus.emit(Sibling{"E3"});
  queued.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"E1_start", "B", "E1_end", "E2", "E3", "A", "C"});
}

TEST_CASE("an event of somebody else far back in the queue runs first", "[S-JMP-9]") {
  Gate queued;
  Recorder log;
  Event<Child> target;
  EventBus bus("NestedForeign");
  note_names(bus, log);
  bus.on<Root>([&](Event<Root>) {
    queued.wait();
    target.now();
    log.add("root_end");
  });
  OpenAtExit guard(queued);

  auto root = bus.emit(Root{});
  REQUIRE(queued.wait_for_arrivals(1));
  for (const char* name : {"one", "two", "three"}) bus.emit(Sibling{name});
  target = bus.emit(Child{"target"});
  queued.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"target", "root_end", "one", "two", "three"});
  REQUIRE_FALSE(target.event_parent_id() == std::optional<Uuid>(root.event_id()));
  REQUIRE_FALSE(target.event_blocks_parent_completion());
}

TEST_CASE("an event emitted through the bus and awaited jumps without blocking its emitter", "[S-JMP-9]") {
  Recorder log;
  std::atomic<bool> blocks = true;
  EventBus bus("NestedThroughBus");
  note_names(bus, log);
  bus.on<Root>([&](Event<Root>) {
    bus.emit(Sibling{});
    auto event = bus.emit(Child{});
    event.now();
    blocks = event.event_blocks_parent_completion();
    log.add("root_end");
  });

  bus.emit(Root{}).now();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"child", "root_end", "sibling"});
  REQUIRE_FALSE(blocks.load());
}

TEST_CASE("siblings wait until the outermost run has ended", "[S-JMP-11][S-JMP-10]") {
  Recorder log;
  EventBus bus("NestedSiblings");
  note_names(bus, log);
  bus.on<Root>([&](Event<Root> event) {
    log.add("parent_start");
    event.event_bus().emit(Sibling{});
    event.emit(Child{}).now();
    log.add("parent_end");
  });

  bus.emit(Root{});
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"parent_start", "child", "parent_end", "sibling"});
}

TEST_CASE("a coroutine parent holds its siblings back too", "[S-JMP-11][S-JMP-10]") {
  Recorder log;
  EventBus bus("NestedCoroutine");
  note_names(bus, log);
  bus.on<Grandchild>([&](Event<Grandchild> event) -> abxbus::task<> {
    log.add("middle_start");
    auto child = event.emit(Child{});  // a statement of its own: see task.hpp
    co_await child.now_async();
    log.add("middle_end");
  });
  bus.on<Root>([&](Event<Root> event) -> abxbus::task<> {
    log.add("parent_start");
    event.event_bus().emit(Sibling{});
    auto middle = event.emit(Grandchild{});
    co_await middle.now_async();
    log.add("parent_end");
  });

  bus.emit(Root{});
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"parent_start", "middle_start", "child", "middle_end", "parent_end", "sibling"});
}

TEST_CASE("nested runs of global-serial buses go on under the caller's hold", "[S-JMP-10]") {
  Recorder log;
  const Domain domain;
  const EventBusOptions options{.event_concurrency = EventConcurrency::global_serial, .domain = domain};
  EventBus first("NestedGlobalA", options);
  EventBus second("NestedGlobalB", options);
  note_names(second, log);
  first.on<Root>([&](Event<Root>) {
    log.add("root_start");
    second.emit(Sibling{});
    second.emit(Child{}).now();
    log.add("root_end");
  });

  first.emit(Root{});
  REQUIRE(first.wait_until_idle());
  REQUIRE(second.wait_until_idle());
  REQUIRE(log.notes() == Names{"root_start", "child", "root_end", "sibling"});
}

TEST_CASE("many levels deep the chain still holds the lock", "[S-JMP-10]") {
  constexpr int depth = 20;
  Recorder log;
  Gate gate;
  EventBus bus("NestedLevels", {.max_history_size = std::nullopt});
  note_names(bus, log);
  for (int level = 0; level < depth; ++level)
    bus.on("Level" + std::to_string(level), [&, level](BaseEvent event) {
      if (level + 1 < depth) {
        event.emit(Root{}, {.event_type = "Level" + std::to_string(level + 1)}).now();
      } else {
        event.emit(Child{}).now();
      }
      log.add("end " + std::to_string(level));
    });

  bus.on<Grandchild>([&](const Grandchild&) { gate.wait(); });
  OpenAtExit guard(gate);
  bus.emit(Grandchild{});
  bus.emit(Root{}, {.event_type = "Level0"});
  bus.emit(Sibling{});
  gate.open();
  REQUIRE(bus.wait_until_idle());

  Names expected{"child"};
  for (int level = depth; level-- > 0;) expected.push_back("end " + std::to_string(level));
  expected.push_back("sibling");
  REQUIRE(log.notes() == expected);
}

TEST_CASE("awaiting from the emitting handler makes the child a blocking one, waiting does not", "[S-JMP-14]") {
  Recorder log;
  Event<Child> awaited;
  Event<Child> read;
  Event<Child> waited;
  std::atomic<bool> early_flag = true;
  EventBus bus("NestedBlocking", {.event_concurrency = EventConcurrency::parallel});
  bus.on<Child>([](const Child&) { return 1; });
  bus.on<Root>([&](Event<Root> event) {
    awaited = event.emit(Child{"awaited"});
    read = event.emit(Child{"read"});
    waited = event.emit(Child{"waited"});
    early_flag = awaited.event_blocks_parent_completion();
    awaited.now();
    read.event_result<int>();
    waited.wait();
  });

  bus.emit(Root{}).now();
  REQUIRE_FALSE(early_flag.load());
  REQUIRE(awaited.event_blocks_parent_completion());
  REQUIRE(read.event_blocks_parent_completion());
  REQUIRE_FALSE(waited.event_blocks_parent_completion());
}

TEST_CASE("a parent completes only after its blocking child", "[S-JMP-1][S-JMP-14]") {
  Gate gate;
  std::atomic<bool> parent_ended = false;
  EventBus bus("NestedOpenChild");
  bus.on<Child>([&](const Child&) { gate.wait(); });
  bus.on<Root>([&](Event<Root> event) {
    thrown_by([&] { event.emit(Child{}).now({.timeout = 10ms}); });
    parent_ended = true;
  });
  auto root = bus.emit(Root{});
  Caller call([root] { root.now(); });
  OpenAtExit guard(gate);

  REQUIRE(eventually([&] { return parent_ended.load(); }));
  REQUIRE(call.still_blocked_after(30ms));
  REQUIRE_FALSE(completed(root));
  gate.open();
  REQUIRE(call.finishes());
  REQUIRE(completed(root));
}

TEST_CASE("root, a sibling from outside, and an awaited child", "[S-JMP-29]") {
  Gate gate;
  Recorder log;
  Event<Child> child;
  EventBus bus("NestedPinned29");
  note_names(bus, log);
  bus.on<Root>([&](Event<Root> event) {
    log.add("root:start");
    gate.wait();
    child = event.emit(Child{});
    child.now();
    log.add("root:end");
  });
  OpenAtExit guard(gate);

  auto root = bus.emit(Root{});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.emit(Sibling{});
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"root:start", "child", "root:end", "sibling"});
  REQUIRE(child.event_parent_id() == std::optional<Uuid>(root.event_id()));
  const std::vector<BaseEvent> expected{child};
  REQUIRE(root.event_children() == expected);
}

TEST_CASE("a child awaits a grandchild while another event is queued", "[S-JMP-31]") {
  Gate gate;
  Recorder log;
  EventBus bus("NestedPinned31");
  bus.on<Grandchild>([&](const Grandchild&) { log.add("child2_end"); });
  bus.on<Child>([&](Event<Child> event) {
    event.emit(Grandchild{}).now();
    log.add("child1_end");
  });
  bus.on<Sibling>([&](const Sibling&) { log.add("event2_start"); });
  bus.on<Root>([&](Event<Root> event) {
    gate.wait();
    event.emit(Child{}).now();
    log.add("event1_end");
  });
  OpenAtExit guard(gate);

  bus.emit(Root{});
  REQUIRE(gate.wait_for_arrivals(1));
  bus.emit(Sibling{});
  gate.open();
  REQUIRE(bus.wait_until_idle());
  REQUIRE(log.notes() == Names{"child2_end", "child1_end", "event1_end", "event2_start"});
}

TEST_CASE("two buses with queues: only the chain's own bus stands still", "[S-JMP-33]") {
  Gate queued;
  Recorder log;
  std::atomic<bool> third_ran_meanwhile = false;
  EventBus first("NestedPinned33A");
  EventBus second("NestedPinned33B");
  note_names(first, log);
  second.on<Sibling>([&](const Sibling& sibling) { log.add(sibling.name); });
  first.on<Grandchild>([&](const Grandchild&) {
    third_ran_meanwhile = eventually([&] { return log.contains("E3"); });
    log.add("child");
  });
  first.on<Root>([&](Event<Root> event) {
    queued.wait();
    event.emit(Grandchild{}).now();
    log.add("E1_end");
  });
  OpenAtExit guard(queued);

  first.emit(Root{});
  REQUIRE(queued.wait_for_arrivals(1));
  first.emit(Sibling{"E2"});
  queued.open();
  second.emit(Sibling{"E3"});
  second.emit(Sibling{"E4"});
  REQUIRE(first.wait_until_idle());
  REQUIRE(second.wait_until_idle());

  REQUIRE(third_ran_meanwhile.load());
  Names on_first;
  for (const std::string& note : log.notes())
    if (note != "E3" && note != "E4") on_first.push_back(note);
  REQUIRE(on_first == Names{"child", "E1_end", "E2"});
}

TEST_CASE("a child that throws does not throw into its parent", "[S-JMP-34]") {
  Recorder log;
  Event<Child> child;
  EventBus bus("NestedPinned34");
  bus.on<Child>([](const Child&) { throw std::runtime_error("child failed"); });
  bus.on<Root>([&](Event<Root> event) {
    child = event.emit(Child{});
    log.add(thrown_by([&] { child.now({.timeout = 15s}); }));
    log.add("parent_end");
  });

  auto root = bus.emit(Root{}).now();
  REQUIRE(log.notes() == Names{"", "parent_end"});
  REQUIRE(completed(child));
  REQUIRE(statuses(child) == Names{"error"});
  REQUIRE(statuses(root) == Names{"completed"});
}

TEST_CASE("a bus that is added while now() waits is picked up, also one that the caller itself holds", "[S-JMP-18]") {
  // With a handler timeout the child runs on another worker, so the forwarding happens while the caller waits.
  EventBus outer("PickedUpOuter", {.max_history_size = 0}), other("PickedUpOther", {.max_history_size = 0});
  Recorder order;
  const bool coroutine = GENERATE(false, true);
  other.on("Child", outer.forwarder(), {.handler_timeout = 10s});
  outer.on<Child>([&](const Child&) { order.add("child"); });
  if (coroutine) {
    outer.on<Root>([&](Event<Root>) -> task<void> {
      const auto child = other.emit(Child{});
      co_await child.now_async();
      order.add("parent");
    });
  } else {
    outer.on<Root>([&](const Root&) {
      other.emit(Child{}).now();
      order.add("parent");
    });
  }
  outer.on<Sibling>([&](const Sibling&) { order.add("tail"); });
  for (int round = 0; round < 20; ++round) {
    auto parent = outer.emit(Root{});
    auto tail = outer.emit(Sibling{});
    parent.wait({.timeout = patience});
    tail.wait({.timeout = patience});
    const std::vector<std::string> notes = order.notes();
    REQUIRE(notes.size() == static_cast<std::size_t>(3 * (round + 1)));
    CHECK(std::vector<std::string>(notes.end() - 3, notes.end()) ==
          std::vector<std::string>{"child", "parent", "tail"});
  }
}

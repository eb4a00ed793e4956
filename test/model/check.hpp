#pragma once

/// What must hold after every program, whatever it was.

#include "model/execute.hpp"
#include "model/program.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace model {

/// Collects what does not hold. Everything here runs on one thread, after the program.
class Check {
 public:
  explicit Check(World& world)
      : world_(world), program_(world.program()), nodes_(world.nodes()), starts_(world.starts()) {
    for (const std::string& problem : world.problems()) problems_.push_back(problem);
    for (std::size_t i = 0; i < nodes_.size(); ++i) node(static_cast<int>(i), nodes_[i]);
    order();
    exclusion();
    histories();
    still_working();
  }

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void must(bool holds, const std::string& what) {
    if (!holds) problems_.push_back(what);
  }

  /// Exactly once, terminal, completed.
  void node(int number, const Node& node) {
    const std::string name = "node " + std::to_string(number) + ": ";
    int runs = 0;
    for (const int ran : node.ran) {
      must(ran <= 1, name + "a handler ran more than once");
      runs += ran;
    }
    if (node.refused) {
      must(runs == 0, name + "refused, and handled");
      return;
    }
    const abxbus::BaseEvent& event = node.event;
    const auto path = event.event_path();
    if (path.empty()) {
      // Emitted by a handler that had been cut short: not accepted anywhere (S-EMIT-9).
      must(runs == 0, name + "not accepted, and handled");
      must(node.thread < 0, name + "a root was not accepted");
      must(event.event_status() == abxbus::EventStatus::pending, name + "not accepted, and not pending");
      return;
    }
    if (program_.destroyed && event.event_status() == abxbus::EventStatus::pending) {
      must(runs == 0, name + "dropped by destroy, and handled");  // S-DST-7
      return;
    }
    must(event.event_status() == abxbus::EventStatus::completed, name + "not completed");
    must(event.event_completed_at().has_value(), name + "completed without a time");
    must(event.event_pending_bus_count() == 0, name + "completed with pending buses");
    must(std::set<std::string>(path.begin(), path.end()).size() == path.size(), name + "twice on one bus");

    int begun = 0;
    std::set<std::string> seen;
    for (const abxbus::EventResult& result : event.event_results()) {
      const std::string handler = result.handler_name();
      must(seen.insert(handler).second, name + "two results of handler " + handler);
      const bool terminal = result.status() == abxbus::EventResultStatus::completed ||
                            result.status() == abxbus::EventResultStatus::error;
      must(terminal, name + "handler " + handler + " has no terminal result");
      must(result.completed_at().has_value(), name + "handler " + handler + " ended without a time");
      const bool ran = node.ran[static_cast<std::size_t>(std::stoi(handler))] == 1;
      must(ran || result.status() == abxbus::EventResultStatus::error,
           name + "handler " + handler + " completed unrun");
      if (ran) must(result.started_at().has_value(), name + "handler " + handler + " ran without a start");
      if (result.started_at() && result.completed_at()) {
        must(*result.started_at() <= *result.completed_at(), name + "handler " + handler + " ended before it began");
      }
      must((result.status() == abxbus::EventResultStatus::error) == (result.error() != nullptr),
           name + "handler " + handler + ": status and error disagree");
      begun += ran ? 1 : 0;
    }
    must(begun == runs, name + "a handler ran that left no result");
    // A forwarder that is cut short may have been past the check: then its bus takes the event for the history alone.
    if (!program_.destroyed && !was_cut(node)) {
      int expected = 0;
      for (std::size_t bus = 0; bus < program_.buses.size(); ++bus) {
        if (std::find(path.begin(), path.end(), world_.bus(static_cast<int>(bus)).label()) == path.end()) continue;
        for (const HandlerPlan& handler : program_.handlers)
          expected += program_.matches(handler, static_cast<int>(bus), node.type) ? 1 : 0;
      }
      must(static_cast<int>(seen.size()) == expected,
           name + std::to_string(seen.size()) + " results instead of " + std::to_string(expected));
    }
  }

  /// Some handler of it was cut short: its code may begin at any time after that, or go on.
  static bool was_cut(const Node& node) {
    for (const abxbus::EventResult& result : node.event.event_results()) {
      const std::string type = result.error_type();
      if (type == "EventHandlerTimeoutError" || type == "EventHandlerAbortedError") return true;
    }
    return false;
  }

  /// What one thread emitted on a serial bus began there in that order, unless now() let it pass others.
  void order() {
    std::map<std::pair<int, int>, int> last;  // (bus, thread) -> node
    std::set<int> begun;
    for (const Start& start : starts_) {
      const Node& node = nodes_[static_cast<std::size_t>(start.node)];
      const int bus = program_.handlers[static_cast<std::size_t>(start.handler)].bus;
      const bool ordered = node.thread >= 0 && node.bus == bus && node.then != Then::now && !node.own_modes &&
                           program_.buses[static_cast<std::size_t>(bus)].events != abxbus::EventConcurrency::parallel;
      if (!ordered || was_cut(node) || !begun.insert(start.node).second) continue;
      const auto [entry, first] = last.try_emplace({bus, node.thread}, start.node);
      if (!first) {
        must(entry->second < start.node, "node " + std::to_string(start.node) + " began after node " +
                                             std::to_string(entry->second) + " of the same thread");
        entry->second = start.node;
      }
    }
  }

  /// On a bus that is serial in events and handlers, handlers are inside one after another; only those that are left
  /// behind, nested or of other modes overlap.
  void exclusion() {
    for (std::size_t i = 0; i < program_.buses.size(); ++i) {
      const BusPlan& bus = program_.buses[i];
      bool serial = bus.events != abxbus::EventConcurrency::parallel &&
                    bus.handlers == abxbus::EventHandlerConcurrency::serial && !bus.timeout_us && !program_.destroyed;
      for (const HandlerPlan& handler : program_.handlers) {
        const bool nests = handler.does == Does::emits_now || handler.does == Does::awaits_now;
        serial = serial && !nests && !handler.timeout_us;
      }
      for (const EmitPlan& emit : program_.emits) serial = serial && !emit.concurrency && emit.then != Then::now;
      if (serial) {
        must(world_.crowd(static_cast<int>(i)) <= 1, "serial bus " + std::to_string(i) + " had handlers side by side");
      }
    }
  }

  void histories() {
    for (std::size_t i = 0; i < program_.buses.size(); ++i) {
      const abxbus::EventBusRef& bus = world_.bus(static_cast<int>(i));
      if (bus.is_destroyed()) continue;
      const std::string name = "bus " + std::to_string(i) + ": ";
      must(bus.is_idle_and_queue_empty() && bus.pending_event_queue().empty(), name + "not idle");
      must(bus.events_pending().empty() && bus.events_started().empty(), name + "unfinished events");
      const std::optional<std::size_t> limit = program_.buses[i].history;
      if (limit) must(bus.event_history().size() <= *limit, name + "more history than its limit");
    }
  }

  /// No lock is held and no worker lost: every bus handles another event.
  void still_working() {
    for (std::size_t i = 0; i < program_.buses.size(); ++i) {
      const BusPlan& plan = program_.buses[i];
      const abxbus::EventBusRef& bus = world_.bus(static_cast<int>(i));
      if (bus.is_destroyed() || (plan.history && *plan.history != 0 && !plan.drop)) continue;
      struct Last {};
      try {
        bool handled = false;
        bus.on<Last>([&handled](const Last&) { handled = true; });
        bus.emit(Last{}, {.event_timeout = abxbus::Seconds(0)}).now({.timeout = testing::patience});
        must(handled, "bus " + std::to_string(i) + " completed an event without its handler");
      } catch (...) {
        problems_.push_back("bus " + std::to_string(i) +
                            " does not work any more: " + testing::error_name(std::current_exception()));
      }
    }
  }

  World& world_;
  const Program& program_;
  std::deque<Node> nodes_;
  std::vector<Start> starts_;
  std::vector<std::string> problems_;
};

}  // namespace model

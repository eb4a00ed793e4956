#pragma once

/// Runs a program on the library and keeps what happened: every handler's start, every node's event. Threads and
/// handlers write here; it is read when all is quiet.

#include "model/program.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace model {

using namespace std::chrono_literals;

inline constexpr int max_handlers = 10;
inline constexpr int max_depth = 2;
inline constexpr int max_nodes = 200;

/// One emission.
struct Node {
  int bus = 0;
  int type = 0;
  int thread = -1;  ///< of a root
  Then then = Then::nothing;
  bool own_modes = false;  ///< has an event concurrency of its own
  bool refused = false;    ///< emit threw
  abxbus::BaseEvent event = {};
  std::array<int, max_handlers> ran{};  ///< how often each handler began
};

/// One handler that began, in the order in which they did.
struct Start {
  int node;
  int handler;
};

class World {
 public:
  explicit World(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.buses.size(); ++i) {
      buses_.push_back(std::make_unique<abxbus::EventBus>("Model" + std::to_string(i), options_of(program.buses[i])));
      refs_.push_back(*buses_.back());
    }
    for (std::size_t i = 0; i < program.handlers.size(); ++i) register_handler(static_cast<int>(i));
  }

  /// Emits everything and returns when all is quiet; false when it did not become quiet.
  bool run() {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < program_.threads; ++thread)
      threads.emplace_back([this, thread] { emit_all(thread); });
    if (program_.destroyed) bus(*program_.destroyed).destroy();
    threads.clear();
    return becomes_quiet();
  }

  /// Ends the buses and lets go of the events.
  void end() {
    buses_.clear();
    refs_.clear();
    nodes_.clear();
  }

  /// What is still going on, for the report of a program that does not become quiet.
  std::string unfinished() {
    std::string text = "  " + std::to_string(inside_.load()) + " handlers inside\n";
    int number = 0;
    for (const Node& node : nodes()) {
      const std::string name = "  node " + std::to_string(number++) + " (" +
                               std::string(pattern_names[static_cast<std::size_t>(node.type)]) + ")";
      if (node.refused || node.event.event_status() == abxbus::EventStatus::completed) continue;
      text += name + " " + std::string(abxbus::to_string(node.event.event_status())) + ":";
      for (const std::string& bus : node.event.event_path()) text += " " + bus;
      for (const abxbus::EventResult& result : node.event.event_results())
        text += ", " + result.handler_name() + " " + std::string(abxbus::to_string(result.status()));
      text += "\n";
    }
    return text;
  }

  const Program& program() const { return program_; }
  /// Handlers may use it when the bus is gone: one that was cut short may still run while the buses end.
  const abxbus::EventBusRef& bus(int index) const { return refs_[static_cast<std::size_t>(index)]; }
  /// Copies: a handler that was cut short before its code began may begin at any time.
  std::deque<Node> nodes() {
    const std::lock_guard lock(mutex_);
    return nodes_;
  }
  std::vector<Start> starts() {
    const std::lock_guard lock(mutex_);
    return starts_;
  }
  /// How many handlers of the bus have been inside at the same time.
  int crowd(int bus) const { return crowds_[static_cast<std::size_t>(bus)].max(); }
  std::vector<std::string> problems() const { return problems_.notes(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// How deep nodes are nested, and which node it is, whatever the type.
  struct Place {
    int node = 0;
    int depth = 0;
  };
  static Place place_of(const abxbus::BaseEvent& event) {
    if (const auto red = event.as<Red>()) return {(*red)->node, (*red)->depth};
    if (const auto green = event.as<Green>()) return {(*green)->node, (*green)->depth};
    const auto blue = event.payload_as<Blue>();
    return {blue.node, blue.depth};
  }

  static abxbus::EventBusOptions options_of(const BusPlan& plan) {
    static const std::array<abxbus::Executor, 3> executors = {abxbus::Executor::default_executor(),
                                                              abxbus::Executor(abxbus::ExecutorOptions{.workers = 1}),
                                                              abxbus::Executor(abxbus::ExecutorOptions{.workers = 3})};
    abxbus::EventBusOptions options;
    options.event_concurrency = plan.events;
    options.event_handler_concurrency = plan.handlers;
    options.event_handler_completion = plan.completion;
    options.max_history_size = plan.history;
    options.max_history_drop = plan.drop;
    if (plan.timeout_us) options.event_timeout = std::chrono::microseconds(*plan.timeout_us);
    if (plan.never_inline) options.inline_deadline_floor = 0s;
    options.executor = executors[static_cast<std::size_t>(plan.executor)];
    options.warn_on_duplicate_handler_names = false;
    return options;
  }

  /// A handler that runs, or is suspended.
  class Inside {
   public:
    Inside(World& world, int handler, int node) : world_(world), handler_(handler) {
      world_.inside_.fetch_add(1);
      {
        const std::lock_guard lock(world_.mutex_);
        world_.starts_.push_back({node, handler});
        ++world_.nodes_[static_cast<std::size_t>(node)].ran[static_cast<std::size_t>(handler)];
      }
      crowd().enter();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      crowd().leave();
      world_.inside_.fetch_sub(1);
    }

   private:
    testing::Meeting& crowd() {
      return world_.crowds_[static_cast<std::size_t>(world_.program_.handlers[static_cast<std::size_t>(handler_)].bus)];
    }
    World& world_;
    int handler_;
  };

  void register_handler(int index) {
    const HandlerPlan& plan = program_.handlers[static_cast<std::size_t>(index)];
    abxbus::HandlerOptions options;
    options.handler_name = std::to_string(index);
    if (plan.timeout_us) options.handler_timeout = std::chrono::microseconds(*plan.timeout_us);
    const std::string pattern(pattern_names[static_cast<std::size_t>(plan.type)]);
    const abxbus::EventBusRef& on = bus(plan.bus);
    if (plan.does == Does::awaits_now || plan.does == Does::awaits_wait) {
      on.on(
          pattern, [this, index](abxbus::BaseEvent event) -> abxbus::task<int> { return awaits(index, event); },
          options);
    } else if (plan.does == Does::forwards) {
      on.on(
          pattern,
          [this, index, forward = bus(plan.target).forwarder()](abxbus::BaseEvent event) {
            const Inside inside(*this, index, place_of(event).node);
            return forward(event);
          },
          options);
    } else if (plan.typed && plan.type != any_type) {
      const auto typed = [this, index](auto event, std::stop_token stop) { return acts(index, event, stop); };
      if (plan.type == 0)
        on.on<Red>([typed](abxbus::Event<Red> event, std::stop_token stop) { return typed(event, stop); }, options);
      if (plan.type == 1)
        on.on<Green>([typed](abxbus::Event<Green> event, std::stop_token stop) { return typed(event, stop); }, options);
      if (plan.type == 2)
        on.on<Blue>([typed](abxbus::Event<Blue> event, std::stop_token stop) { return typed(event, stop); }, options);
    } else {
      on.on(
          pattern, [this, index](abxbus::BaseEvent event, std::stop_token stop) { return acts(index, event, stop); },
          options);
    }
  }

  std::optional<int> acts(int index, const abxbus::BaseEvent& event, const std::stop_token& stop) {
    const HandlerPlan& plan = program_.handlers[static_cast<std::size_t>(index)];
    const Place place = place_of(event);
    const Inside inside(*this, index, place.node);
    switch (plan.does) {
      case Does::throws_error:
        throw std::runtime_error("thrown by the model");
      case Does::throws_number:
        throw 5;  // NOLINT: a handler may throw anything
      case Does::works_until_stopped: {
        const auto end = Clock::now() + 300us;
        while (Clock::now() < end && !stop.stop_requested()) std::this_thread::yield();
        return 1;
      }
      case Does::ignores_stop:
        std::this_thread::sleep_for(1ms);
        return 2;
      case Does::emits:
        emit_child(plan, event, place);
        return 3;
      case Does::emits_now:
        if (const auto child = emit_child(plan, event, place)) must_be_completed(child->now());
        return 4;
      case Does::emits_wait:
        if (const auto child = emit_child(plan, event, place)) {
          try {
            must_be_completed(child->wait({.timeout = 200us}));
          } catch (const abxbus::TimeoutError&) {  // the child cannot run before this handler has ended
          }
        }
        return 5;
      case Does::finds:
        static_cast<void>(
            bus(plan.target)
                .find(pattern_names[static_cast<std::size_t>(plan.child)], {.past = true, .future = 100us}));
        return 6;
      case Does::returns_nothing:
        return std::nullopt;
      default:
        return 0;
    }
  }

  abxbus::task<int> awaits(int index, abxbus::BaseEvent event) {
    const HandlerPlan& plan = program_.handlers[static_cast<std::size_t>(index)];
    const Place place = place_of(event);
    const Inside inside(*this, index, place.node);
    if (const auto child = emit_child(plan, event, place)) {
      if (plan.does == Does::awaits_now) {
        co_await child->now_async();
        must_be_completed(*child);
      } else {
        try {
          co_await child->wait_async({.timeout = 200us});
          must_be_completed(*child);
        } catch (const abxbus::TimeoutError&) {  // as above
        }
      }
    }
    co_return 7;
  }

  /// Nothing where the tree would become too deep or too large.
  std::optional<abxbus::BaseEvent> emit_child(const HandlerPlan& plan, const abxbus::BaseEvent& parent, Place place) {
    if (place.depth >= max_depth) return std::nullopt;
    const auto node = new_node({.bus = plan.linked ? -1 : plan.target, .type = plan.child});
    if (!node) return std::nullopt;
    return emit_as(*node, plan.child, place.depth + 1, [&](auto payload) -> abxbus::BaseEvent {
      if (plan.linked) return parent.emit(payload);
      return bus(plan.target).emit(payload);
    });
  }

  void emit_all(int thread) {
    for (const EmitPlan& plan : program_.emits) {
      if (plan.thread != thread) continue;
      const auto node = new_node({.bus = plan.bus,
                                  .type = plan.type,
                                  .thread = thread,
                                  .then = plan.then,
                                  .own_modes = plan.concurrency.has_value()});
      if (!node) return;
      abxbus::EventOptions options;
      options.event_concurrency = plan.concurrency;
      options.event_handler_completion = plan.completion;
      try {
        const auto event = emit_as(*node, plan.type, 0, [&](auto payload) -> abxbus::BaseEvent {
          return bus(plan.bus).emit(payload, options);
        });
        if (plan.then == Then::now) must_be_completed(event.now({.timeout = Clock::duration(testing::patience)}));
        if (plan.then == Then::wait) must_be_completed(event.wait({.timeout = Clock::duration(testing::patience)}));
      } catch (const abxbus::EventBusHistoryLimitError&) {
        const BusPlan& limited = program_.buses[static_cast<std::size_t>(plan.bus)];
        if (!limited.history || *limited.history == 0 || limited.drop) problems_.add("a bus without a limit rejected");
      } catch (const abxbus::EventBusDestroyedError&) {
        if (!program_.destroyed) problems_.add("a live bus refused");
      } catch (...) {
        problems_.add("a root failed: " + testing::error_name(std::current_exception()));
      }
    }
  }

  /// The number of the next emission; nothing when there are enough.
  std::optional<int> new_node(Node fresh) {
    const std::lock_guard lock(mutex_);
    if (nodes_.size() >= max_nodes) return std::nullopt;
    nodes_.push_back(std::move(fresh));
    return static_cast<int>(nodes_.size()) - 1;
  }

  template <class Emit>
  abxbus::BaseEvent emit_as(int number, int type, int depth, Emit emit) {
    const auto with_node = [&](auto change) {
      const std::lock_guard lock(mutex_);
      change(nodes_[static_cast<std::size_t>(number)]);
    };
    try {
      abxbus::BaseEvent event = type == 0   ? emit(Red{number, depth})
                                : type == 1 ? emit(Green{number, depth})
                                            : emit(Blue{number, depth});
      with_node([&](Node& node) { node.event = event; });
      return event;
    } catch (...) {
      with_node([](Node& node) { node.refused = true; });
      throw;
    }
  }

  void must_be_completed(const abxbus::BaseEvent& event) {
    if (event.event_status() != abxbus::EventStatus::completed)
      problems_.add("now() or wait() returned before the end");
  }

  /// Handlers that have begun, or nothing while something runs. The buses are looked at one after another: an event may
  /// be forwarded behind the look at its new bus, so a single look proves nothing.
  std::optional<std::size_t> starts_if_quiet() {
    for (const auto& each : buses_)
      if (!each->is_idle_and_queue_empty()) return std::nullopt;
    if (inside_.load() != 0) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return starts_.size();
  }
  /// A destroyed bus counts as idle at once; a run that was about to begin there is over a moment later.
  bool runs_are_over() {
    const std::lock_guard lock(mutex_);
    for (const Node& node : nodes_)
      if (!node.refused && node.event.event_pending_bus_count() != 0) return false;
    return true;
  }
  /// Two looks with nothing begun between them: what the second one found idle was idle during the first.
  bool becomes_quiet() {
    const auto limit = Clock::now() + testing::patience;
    while (Clock::now() < limit) {
      for (const auto& each : buses_)
        if (!each->is_destroyed() && !each->wait_until_idle(testing::patience)) return false;
      const auto before = starts_if_quiet();
      if (before && starts_if_quiet() == before && runs_are_over()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  const Program& program_;
  std::mutex mutex_;
  std::deque<Node> nodes_;
  std::vector<Start> starts_;
  std::array<testing::Meeting, 3> crowds_;
  std::atomic<int> inside_{0};
  testing::Recorder problems_;
  std::vector<abxbus::EventBusRef> refs_;
  std::vector<std::unique_ptr<abxbus::EventBus>> buses_;  // ends first: its handlers use what stands above
};

}  // namespace model

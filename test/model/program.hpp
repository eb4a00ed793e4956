#pragma once

/// A program of the model test: buses, handlers and what some threads emit. Plain data, made from a seed.

#include <abxbus/abxbus.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace model {

/// The event types. All carry the number of the node, the one emission that made them, and how deep it is nested.
struct Red {
  int node = 0;
  int depth = 0;
};
struct Green {
  int node = 0;
  int depth = 0;
};
struct Blue {
  int node = 0;
  int depth = 0;
};
inline constexpr std::array<std::string_view, 4> pattern_names = {"Red", "Green", "Blue", "*"};
inline constexpr int any_type = 3;

/// What a handler does.
enum class Does {
  returns_value,
  returns_nothing,
  throws_error,
  throws_number,
  works_until_stopped,  ///< a while, or until its token is stopped
  ignores_stop,         ///< sleeps a millisecond, whatever happens
  emits,                ///< a child, and leaves it
  emits_now,
  emits_wait,  ///< with a timeout: the child may be unable to run before the parent has ended
  awaits_now,  ///< a coroutine
  awaits_wait,
  forwards,
  finds,  ///< in the past, and for a moment in the future
};
inline constexpr std::array<std::string_view, 13> does_names = {
    "returns_value", "returns_nothing", "throws_error", "throws_number", "works_until_stopped",
    "ignores_stop",  "emits",           "emits_now",    "emits_wait",    "awaits_now",
    "awaits_wait",   "forwards",        "finds"};

struct BusPlan {
  abxbus::EventConcurrency events = abxbus::EventConcurrency::bus_serial;
  abxbus::EventHandlerConcurrency handlers = abxbus::EventHandlerConcurrency::serial;
  abxbus::EventHandlerCompletion completion = abxbus::EventHandlerCompletion::all;
  std::optional<std::size_t> history = std::nullopt;
  bool drop = false;
  std::optional<int> timeout_us = {};
  int executor = 0;  ///< 0: the default; 1: one worker; 2: three workers
  bool never_inline = false;
};

struct HandlerPlan {
  int bus = 0;
  int type = 0;  ///< any_type: "*"
  Does does = Does::returns_value;
  int target = 0;      ///< bus of the child or of the forwarding
  bool linked = true;  ///< the child is emitted through the event, so on its own bus
  int child = 0;       ///< type of the child, or of what is searched for
  bool typed = false;  ///< takes Event<T> instead of BaseEvent
  std::optional<int> timeout_us = {};
};

enum class Then { nothing, now, wait };

struct EmitPlan {
  int thread = 0;
  int bus = 0;
  int type = 0;
  Then then = Then::nothing;
  std::optional<abxbus::EventConcurrency> concurrency = {};
  std::optional<abxbus::EventHandlerCompletion> completion = {};
};

struct Program {
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<BusPlan> buses;
  std::vector<HandlerPlan> handlers;
  std::vector<EmitPlan> emits;
  std::optional<int> destroyed;  ///< this bus is destroyed while the others work

  /// Does the handler get events of that type on that bus?
  bool matches(const HandlerPlan& handler, int bus, int type) const {
    return handler.bus == bus && (handler.type == type || handler.type == any_type);
  }
};

/// For the report of a failure: a line a bus, a handler and an emit.
inline std::string describe(const Program& program) {
  const auto number = [](auto value) { return std::to_string(value); };
  const auto micros = [](std::optional<int> value) { return value ? std::to_string(*value) + "us" : std::string("-"); };
  std::string text = "seed " + number(program.seed) + ", " + number(program.threads) + " threads";
  if (program.destroyed) text += ", bus " + number(*program.destroyed) + " destroyed";
  for (std::size_t i = 0; i < program.buses.size(); ++i) {
    const BusPlan& bus = program.buses[i];
    text += "\n  bus " + number(i) + ": events " + std::string(abxbus::to_string(bus.events)) + ", handlers " +
            std::string(abxbus::to_string(bus.handlers)) + ", completion " +
            std::string(abxbus::to_string(bus.completion)) + ", history " +
            (bus.history ? number(*bus.history) : "all") + (bus.drop ? " drop" : "") + ", timeout " +
            micros(bus.timeout_us) + ", executor " + number(bus.executor) + (bus.never_inline ? ", never inline" : "");
  }
  for (std::size_t i = 0; i < program.handlers.size(); ++i) {
    const HandlerPlan& handler = program.handlers[i];
    text += "\n  handler " + number(i) + ": bus " + number(handler.bus) + " on " +
            std::string(pattern_names[static_cast<std::size_t>(handler.type)]) + " " +
            std::string(does_names[static_cast<std::size_t>(handler.does)]) + " -> bus " + number(handler.target) +
            (handler.linked ? " (linked) " : " ") +
            std::string(pattern_names[static_cast<std::size_t>(handler.child)]) + ", timeout " +
            micros(handler.timeout_us);
  }
  for (const EmitPlan& emit : program.emits) {
    text += "\n  thread " + number(emit.thread) + ": " +
            std::string(pattern_names[static_cast<std::size_t>(emit.type)]) + " on bus " + number(emit.bus) +
            (emit.then == Then::now    ? " now"
             : emit.then == Then::wait ? " wait"
                                       : "") +
            (emit.concurrency ? " " + std::string(abxbus::to_string(*emit.concurrency)) : "") +
            (emit.completion ? " " + std::string(abxbus::to_string(*emit.completion)) : "");
  }
  return text;
}

}  // namespace model

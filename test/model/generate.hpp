#pragma once

/// Programs from seeds: the same seed gives the same program with every compiler and library.

#include "model/program.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>

namespace model {

/// Random choices. Not std::uniform_int_distribution: its numbers differ between libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// 0 .. below - 1.
  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(limit)); }
  bool percent(int chance) { return below(100) < chance; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<int>(values.size())));
  }

 private:
  std::mt19937_64 engine_;
};

inline BusPlan random_bus(Dice& dice) {
  using namespace abxbus;
  BusPlan bus;
  bus.events = dice.one_of({EventConcurrency::bus_serial, EventConcurrency::bus_serial, EventConcurrency::global_serial,
                            EventConcurrency::parallel});
  if (dice.percent(40)) bus.handlers = EventHandlerConcurrency::parallel;
  if (dice.percent(20)) bus.completion = EventHandlerCompletion::first;
  if (dice.percent(20)) {
    bus.history = dice.one_of<std::size_t>({0, 1, 3});
    bus.drop = *bus.history != 0 && dice.percent(70);
  }
  if (dice.percent(15)) bus.timeout_us = 200 + dice.below(1500);
  bus.executor = dice.percent(70) ? 0 : 1 + dice.below(2);
  bus.never_inline = dice.percent(20);
  return bus;
}

inline HandlerPlan random_handler(Dice& dice, int buses) {
  HandlerPlan handler;
  handler.bus = dice.below(buses);
  handler.type = dice.percent(15) ? any_type : dice.below(3);
  // What takes time is rare, so that many programs are run.
  const int what = dice.below(100);
  handler.does = what < 18   ? Does::returns_value
                 : what < 24 ? Does::returns_nothing
                 : what < 32 ? Does::throws_error
                 : what < 36 ? Does::throws_number
                 : what < 42 ? Does::works_until_stopped
                 : what < 44 ? Does::ignores_stop
                 : what < 54 ? Does::emits
                 : what < 70 ? Does::emits_now
                 : what < 74 ? Does::emits_wait
                 : what < 84 ? Does::awaits_now
                 : what < 87 ? Does::awaits_wait
                 : what < 96 ? Does::forwards
                             : Does::finds;
  handler.target = dice.below(buses);
  handler.linked = dice.percent(60);
  handler.child = dice.below(3);
  handler.typed = dice.percent(50);
  if (dice.percent(8)) handler.timeout_us = 100 + dice.below(900);
  return handler;
}

inline Program random_program(std::uint64_t seed) {
  Dice dice(seed);
  Program program;
  program.seed = seed;
  const int buses = 1 + dice.below(3);
  for (int i = 0; i < buses; ++i) program.buses.push_back(random_bus(dice));
  const int handlers = 1 + dice.below(3 * buses + 1);
  for (int i = 0; i < handlers; ++i) program.handlers.push_back(random_handler(dice, buses));
  program.threads = 1 + dice.below(2);
  const int emits = 1 + dice.below(10);
  for (int i = 0; i < emits; ++i) {
    EmitPlan emit;
    emit.thread = dice.below(program.threads);
    emit.bus = dice.below(buses);
    emit.type = dice.below(3);
    emit.then = dice.percent(50) ? Then::nothing : dice.one_of({Then::now, Then::wait});
    if (dice.percent(10)) {
      emit.concurrency = dice.one_of({abxbus::EventConcurrency::bus_serial, abxbus::EventConcurrency::global_serial,
                                      abxbus::EventConcurrency::parallel});
    }
    if (dice.percent(10)) emit.completion = abxbus::EventHandlerCompletion::first;
    program.emits.push_back(emit);
  }
  if (dice.percent(5)) program.destroyed = dice.below(buses);
  return program;
}

}  // namespace model

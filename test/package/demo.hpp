#pragma once

// What every consumer project does with the library: one event, one handler, its result.

#include <abxbus/abxbus.hpp>

struct Ping {
  int n = 0;
  using event_result_type = int;
};

/// The handler's answer to Ping{41}, 42 when everything works, 0 when it gave none.
inline int ask() {
  abxbus::EventBus bus("Demo");
  bus.on<Ping>([](const Ping& ping) { return ping.n + 1; });
  return bus.emit(Ping{41}).now().event_result().value_or(0);
}

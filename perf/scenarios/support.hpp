#pragma once

#include <abxbus/event_bus.hpp>
#include <abxbus/memory.hpp>
#include <abxbus/options.hpp>

#include <chrono>
#include <cstddef>
#include <thread>

namespace abxbus::perf {

/// The event that makes a bus trim its history to one; nobody handles it.
struct TrimEvent {};

/// Everything at its default but a history that drops.
inline EventBusOptions dropping(std::size_t history) {
  return {.max_history_size = history, .max_history_drop = true};
}

/// As upstream does it: history size one, and one more event.
inline void trim_to_one(const EventBus& bus) {
  bus.event_history().set_max_history_size(1);
  bus.emit(TrimEvent{}).now();
}

inline std::size_t live_bus_count() {
  return EventBus::all_instances().size();
}

/// For what another thread may still be finishing: true as soon as `holds` does, false after a few seconds.
template <class Predicate>
bool eventually(Predicate holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace abxbus::perf

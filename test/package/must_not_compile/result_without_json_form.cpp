// expect: abxbus: this handler returns a type that has no JSON form
#include <abxbus/abxbus.hpp>

struct Opaque {
  void* handle = nullptr;
};

void add(abxbus::EventBus& bus) {
  bus.on("Ping", [](abxbus::BaseEvent) { return Opaque{}; });
}

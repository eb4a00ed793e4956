// expect: abxbus: off() knows entries, ids, function pointers and shared callables
#include <abxbus/abxbus.hpp>

struct Ping {
  int n = 0;
};

void remove(abxbus::EventBus& bus) {
  const auto handler = [](const Ping&) {};
  bus.on<Ping>(handler);
  bus.off<Ping>(handler);
}

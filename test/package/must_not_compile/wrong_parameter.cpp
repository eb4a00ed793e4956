// expect: abxbus: a handler takes (const T&), (Event<T>) or (BaseEvent), optionally followed by std::stop_token
#include <abxbus/abxbus.hpp>

struct Ping {
  int n = 0;
};

void add(abxbus::EventBus& bus) {
  bus.on<Ping>([](const Ping&, int) {});
}

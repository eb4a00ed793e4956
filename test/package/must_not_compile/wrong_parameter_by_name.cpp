// expect: abxbus: a handler takes (const T&), (Event<T>) or (BaseEvent), optionally followed by std::stop_token
#include <abxbus/abxbus.hpp>

void add(abxbus::EventBus& bus) {
  bus.on("Ping", [](int) {});
}

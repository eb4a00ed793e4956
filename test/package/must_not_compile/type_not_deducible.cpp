// expect: abxbus: on(f) needs a callable whose first parameter is (const T&) or (Event<T>)
#include <abxbus/abxbus.hpp>

void add(abxbus::EventBus& bus) {
  bus.on([](auto) {});
}

// expect: abxbus: event payloads may not be over-aligned
#include <abxbus/abxbus.hpp>

struct alignas(128) Wide {
  int n = 0;
};

void send(abxbus::EventBus& bus) {
  bus.emit(Wide{});
}

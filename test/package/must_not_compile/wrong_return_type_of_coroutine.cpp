// expect: abxbus: this handler must return something convertible to the event's event_result_type
#include <abxbus/abxbus.hpp>

#include <string>

struct Sum {
  int left = 0;
  using event_result_type = int;
};

void add(abxbus::EventBus& bus) {
  bus.on<Sum>([](abxbus::Event<Sum>) -> abxbus::task<std::string> { co_return "a text is no int"; });
}

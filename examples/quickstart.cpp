// Events, handlers and a coroutine that awaits a linked child: the library in one page.
#include <abxbus/abxbus.hpp>

#include <iostream>

using namespace std::chrono_literals;

struct ChargeCard {  // a plain aggregate is an event: no macro, no base class
  std::string order_id;
  std::int64_t cents = 0;
  using event_result_type = std::string;  // optional: what handlers return, checked at compile time
};

struct Checkout {
  std::string order_id;
  using event_result_type = std::string;
};

int main() {
  abxbus::EventBus bus("PaymentBus", {.event_timeout = 5s});

  bus.on<ChargeCard>([](const ChargeCard& charge) { return "receipt-" + charge.order_id; });
  bus.on("*", [](const abxbus::BaseEvent& event) { std::clog << event.event_type() << '\n'; });
  bus.on<Checkout>([](abxbus::Event<Checkout> event) -> abxbus::task<std::string> {  // coroutine handler
    auto charge = event.emit(ChargeCard{event->order_id, 1999});                     // linked child
    co_await charge.now_async();                                                     // runs ahead of the queue
    co_return *charge.event_result();
  });

  auto event = bus.emit(ChargeCard{.order_id = "A1", .cents = 1999});  // returns at once
  std::string receipt = *event.now().event_result();
  std::cout << receipt << '\n';

  auto checkout = bus.emit(Checkout{.order_id = "B2"});
  std::cout << "checkout of " << checkout->order_id << ": " << *checkout.now().event_result() << '\n';
}

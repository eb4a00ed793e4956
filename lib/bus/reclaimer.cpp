#include "bus/reclaimer.hpp"

#include "bus/core.hpp"

#include <utility>

namespace abxbus::detail {

Reclaimer::~Reclaimer() {
  for (const Item& item : previous_) item.destroy(item.object);
  for (const Item& item : current_) item.destroy(item.object);
}

Reclaimer::Pin Reclaimer::pin() noexcept {
  for (;;) {
    const std::uint32_t epoch = epoch_.load(std::memory_order_seq_cst) & 1;
    pins_[epoch].fetch_add(1, std::memory_order_seq_cst);
    if ((epoch_.load(std::memory_order_seq_cst) & 1) == epoch) return epoch;
    pins_[epoch].fetch_sub(1, std::memory_order_seq_cst);
  }
}

Reclaimer::Pin Reclaimer::pin_all() noexcept {
  for (auto& pins : pins_) pins.fetch_add(1, std::memory_order_seq_cst);
  return all_epochs;
}

void Reclaimer::unpin(Pin pin) noexcept {
  bool last = false;
  for (Pin epoch = 0; epoch < 2; ++epoch)
    if (pin == epoch || pin == all_epochs) last = pins_[epoch].fetch_sub(1, std::memory_order_seq_cst) == 1 || last;
  if (last && has_retired()) collect();
}

bool Reclaimer::quiet() const noexcept {
  return pins_[0].load(std::memory_order_seq_cst) == 0 && pins_[1].load(std::memory_order_seq_cst) == 0 &&
         !turn_is_held(bus_);
}

void Reclaimer::retire(Item item) {
  const std::lock_guard lock(mutex_);
  current_.push_back(item);
  retired_.store(true, std::memory_order_seq_cst);
}

/// Whether every run under the turn that began before the last flip has ended.
bool Reclaimer::turn_has_moved() noexcept {
  if (!held_at_flip_ || !turn_is_held(bus_)) return true;
  // Two events further on, not one: the holder's plain store of the epoch may become visible after its next event has
  // read the registry's version. The claim of that next event is a seq_cst read-modify-write, so the event after it
  // reads a version that is newer than the flip.
  return bus_.turn_epoch.load(std::memory_order_seq_cst) >= epoch_at_flip_ + 2;
}

void Reclaimer::collect() noexcept {
  wanted_.store(true, std::memory_order_seq_cst);
  // Who is in collect_once at this moment looks at the mark again behind the mutex; who is in `retire` collects next.
  while (wanted_.load(std::memory_order_seq_cst) && collect_once()) {
  }
}

bool Reclaimer::collect_once() noexcept {
  std::vector<Item> doomed;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    wanted_.store(false, std::memory_order_seq_cst);
    // Two rounds: what was retired before this call goes at once when nobody runs.
    for (int round = 0; round < 2; ++round) {
      const std::uint32_t other = (epoch_.load(std::memory_order_seq_cst) + 1) & 1;
      if (pins_[other].load(std::memory_order_seq_cst) != 0 || !turn_has_moved()) break;
      doomed.insert(doomed.end(), previous_.begin(), previous_.end());
      previous_ = std::exchange(current_, {});
      held_at_flip_ = turn_is_held(bus_);
      epoch_at_flip_ = bus_.turn_epoch.load(std::memory_order_seq_cst);
      epoch_.fetch_add(1, std::memory_order_seq_cst);
    }
    retired_.store(!previous_.empty() || !current_.empty(), std::memory_order_seq_cst);
  }
  for (const Item& item : doomed) item.destroy(item.object);
  return true;
}

}  // namespace abxbus::detail

#include "bus/turn.hpp"
#include "bus/turn_word.hpp"

#include <algorithm>

/// The lock of a domain's global-serial events.
namespace abxbus::detail {

bool acquire_global_for_head(BusCore* bus) noexcept {
  DomainState* const domain = bus->domain.get();
  const std::lock_guard lock(domain->arbiter);
  if (bus->global_granted) {
    bus->global_granted = false;
    return true;
  }
  if (domain->global_holder == nullptr && domain->global_waiters.empty()) {
    domain->global_holder = bus;
    return true;
  }
  // The drain does not keep the turn while it waits; the leg stays queued, so now() may take it.
  bus->turn.store(turn_word(bus->cursor, turn_free | turn_attention), std::memory_order_seq_cst);
  if (bus->closing) return false;
  domain->global_waiters.push_back(bus);
  bus->head_wait = true;
  grant_global(domain);
  return false;
}

void grant_global(DomainState* domain) noexcept {
  while (domain->global_holder == nullptr) {
    // First in arrival order whose bus is ready; one made unready by a pause keeps its place.
    const auto ready = std::find_if(domain->global_waiters.begin(), domain->global_waiters.end(), [](BusCore* each) {
      return each->pause == 0 && turn_owner(each->turn.load(std::memory_order_seq_cst)) == turn_free;
    });
    if (ready == domain->global_waiters.end()) return;
    BusCore* const bus = *ready;
    domain->global_waiters.erase(ready);
    bus->head_wait = false;
    domain->global_holder = bus;
    bus->global_granted = true;
    const std::uint64_t cursor = turn_cursor(bus->turn.load(std::memory_order_seq_cst));
    bus->turn.store(turn_word(cursor, turn_scheduled), std::memory_order_seq_cst);
    submit_drain(bus);
  }
}

void put_off_grant(BusCore* bus) noexcept {
  if (!bus->global_granted) return;
  bus->global_granted = false;
  if (!bus->closing) {
    bus->domain->global_waiters.push_front(bus);
    bus->head_wait = true;
  }
  bus->domain->global_holder = nullptr;
  grant_global(bus->domain.get());
}

void close_turn(BusCore* bus) noexcept {
  DomainState* const domain = bus->domain.get();
  const std::lock_guard lock(domain->arbiter);
  bus->closing = true;
  // The waiters' list holds no references: a bus leaves it before its owner can go.
  std::erase(domain->global_waiters, bus);
  bus->head_wait = false;
  // A holder meets the mark and gives back what is reserved itself.
  if (set_attention(bus) != turn_held) put_off_grant(bus);
}

void give_back_grant(BusCore* bus) noexcept {
  {
    const std::lock_guard lock(bus->domain->arbiter);
    if (!bus->global_granted) return;
    bus->global_granted = false;
  }
  release_global(bus->domain.get());
}

bool try_global_for_jump(BusCore* bus, bool has_turn) noexcept {
  DomainState* const domain = bus->domain.get();
  const std::lock_guard lock(domain->arbiter);
  if (has_turn && bus->global_granted) {  // reserved for the head, which is this event or comes after it
    bus->global_granted = false;
    return true;
  }
  if (domain->global_holder != nullptr) return false;
  domain->global_holder = bus;
  return true;
}

void release_global(DomainState* domain) noexcept {
  const std::lock_guard lock(domain->arbiter);
  domain->global_holder = nullptr;
  grant_global(domain);
}

}  // namespace abxbus::detail

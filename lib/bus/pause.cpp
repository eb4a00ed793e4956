#include "bus/turn.hpp"
#include "bus/turn_word.hpp"

#include <vector>

/// Attention: what somebody wants of the turn's holder, and pauses for runs beside the turn.
namespace abxbus::detail {

std::uint64_t set_attention(BusCore* bus) noexcept {
  return turn_owner(bus->turn.fetch_or(turn_attention, std::memory_order_seq_cst));
}

void attention_over(BusCore* bus) noexcept {
  if (bus->pause != 0 || bus->closing || bus->head_wait) return;
  const std::uint64_t word = bus->turn.load(std::memory_order_seq_cst);
  if ((word & turn_attention) == 0 || turn_owner(word) == turn_held) return;  // a holder clears it at its next step
  const std::uint64_t cursor = turn_cursor(word);
  bus->turn.store(turn_word(cursor, turn_free), std::memory_order_seq_cst);
  // Same pair as every release, with the ticket in place of the slot: free first, then look. A look at the slot would
  // need a ReaderGuard, whose end may free events, and the arbiter is held here.
  if (bus->log.issued() <= cursor) return;
  std::uint64_t expected = turn_word(cursor, turn_free);
  if (bus->turn.compare_exchange_strong(expected, turn_word(cursor, turn_scheduled), std::memory_order_seq_cst))
    submit_drain(bus);
}

void pause_bus(BusCore* bus) noexcept {
  const std::lock_guard lock(bus->domain->arbiter);
  ++bus->pause;
  set_attention(bus);
}

namespace {

/// Whether the leg of a published ticket has been claimed. Not under the arbiter: the guard's end may free events.
bool is_claimed(BusCore* bus, std::uint64_t ticket) noexcept {
  const ReaderGuard guard(bus->log);
  LogSegment* const segment = bus->log.find(ticket);
  return segment == nullptr || segment->number != ticket / segment_slots ||
         (segment->slots[ticket % segment_slots].load(std::memory_order_seq_cst) & slot_spent) != 0;
}

}  // namespace

void resume_bus(BusCore* bus) noexcept {
  std::unique_lock lock(bus->domain->arbiter);
  --bus->pause;
  if (bus->pause == 0 && bus->head_wait) {
    // A head that was claimed meanwhile waits for the global lock no more: a drain looks at the one behind it, which
    // may not need that lock at all.
    const std::uint64_t head = turn_cursor(bus->turn.load(std::memory_order_seq_cst));
    lock.unlock();
    const bool gone = is_claimed(bus, head);
    lock.lock();
    if (gone && bus->pause == 0 && bus->head_wait && turn_cursor(bus->turn.load(std::memory_order_seq_cst)) == head) {
      std::erase(bus->domain->global_waiters, bus);
      bus->head_wait = false;
    }
  }
  if (bus->pause == 0) grant_global(bus->domain.get());
  attention_over(bus);
}

}  // namespace abxbus::detail

#pragma once

#include "bus/core.hpp"

#include <atomic>
#include <cstdint>

/// The turn's word and the slot at its cursor, for those files that change them: turn.cpp, drain.cpp, pause.cpp,
/// global_lock.cpp. The protocol is in turn.hpp.
namespace abxbus::detail {

inline constexpr std::uint64_t turn_owner(std::uint64_t word) {
  return word & turn_owner_mask;
}
inline constexpr std::uint64_t turn_cursor(std::uint64_t word) {
  return word >> 3;
}
inline constexpr std::uint64_t turn_word(std::uint64_t cursor, std::uint64_t flags) {
  return (cursor << 3) | flags;
}

/// Holder: the slot at the cursor. Keeps the segment pointer in step; null while the segment does not exist yet.
inline std::atomic<std::uintptr_t>* slot_at_cursor(BusCore* bus) noexcept {
  LogSegment* segment = bus->log.drain_segment;
  const std::uint64_t number = bus->cursor / segment_slots;
  if (segment == nullptr) {
    segment = bus->log.first();  // nothing can have gone before the cursor's first step
    if (segment == nullptr) return nullptr;
    bus->log.drain_segment = segment;
  }
  while (segment->number < number) {
    LogSegment* const next = segment->next.load(std::memory_order_acquire);
    if (next == nullptr) return nullptr;
    segment = next;
    bus->log.drain_segment = segment;
    bus->log.passed(segment->number, false);
  }
  return &segment->slots[bus->cursor % segment_slots];
}

inline bool published_at_cursor(BusCore* bus) noexcept {
  std::atomic<std::uintptr_t>* const slot = slot_at_cursor(bus);
  return slot != nullptr && (slot->load(std::memory_order_seq_cst) & ~slot_bits) != 0;
}

/// Holder: steps over slots whose leg is not the drain's: claimed by somebody else, or the lane's.
inline void skip_done(BusCore* bus) noexcept {
  for (;;) {
    std::atomic<std::uintptr_t>* const slot = slot_at_cursor(bus);
    if (slot == nullptr) return;
    const std::uintptr_t value = slot->load(std::memory_order_seq_cst);
    if ((value & ~slot_bits) == 0 || (value & (slot_spent | slot_lane)) == 0) return;
    ++bus->cursor;
  }
}

// turn.cpp
/// Holder met ATTN. False: the turn has been given up.
bool attend(BusCore* bus) noexcept;
/// Frees the turn if nothing waits at the cursor; true when it is free (or given up), false when held with work.
bool release_if_dry(BusCore* bus) noexcept;
/// The turn's holder has given up a free turn: retired callables may go now.
void after_free(BusCore* bus) noexcept;

}  // namespace abxbus::detail

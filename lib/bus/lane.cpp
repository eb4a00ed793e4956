#include "bus/completion.hpp"
#include "bus/run.hpp"
#include "bus/turn.hpp"

#include <algorithm>

/// The lane: starts the parallel-mode events of a bus in the order of their acceptance.
namespace abxbus::detail {

namespace {
constexpr std::uint64_t lane_held = 1;
}

void advance_lane(BusCore* bus, std::uint64_t ticket) noexcept {
  EventLog& log = bus->log;
  std::uint64_t word = bus->lane.load(std::memory_order_seq_cst);
  // Held: the holder looks at the slot again after it has freed the lane (Dekker slot, lane). Free at another ticket
  // than this one: the emitter of that ticket comes here.
  while ((word & lane_held) == 0 && (word >> 1) <= ticket) {
    if (!bus->lane.compare_exchange_weak(word, word | lane_held, std::memory_order_seq_cst)) continue;
    std::uint64_t cursor = word >> 1;
    for (;;) {
      std::atomic<std::uintptr_t>* slot = nullptr;
      {
        LogSegment* segment = log.lane_segment;
        if (segment == nullptr) {
          // First use: everything older than the oldest segment has been drained; the lane keeps segments from now on.
          segment = log.start_lane();
          if (segment != nullptr) cursor = std::max(cursor, segment->number * segment_slots);
        }
        while (segment != nullptr && segment->number < cursor / segment_slots) {
          segment = segment->next.load(std::memory_order_acquire);
          if (segment != nullptr) {
            log.lane_segment = segment;
            log.passed(segment->number, true);
          }
        }
        if (segment != nullptr) slot = &segment->slots[cursor % segment_slots];
      }
      const std::uintptr_t value = slot == nullptr ? 0 : slot->load(std::memory_order_seq_cst);
      if ((value & ~slot_bits) == 0) break;
      if ((value & slot_lane) != 0 && claim_slot(*slot)) {
        Leg* const leg = EventLog::leg_of(value);
        leg->state.store(LegState::claimed, std::memory_order_release);
        start_parallel_run(leg);
      }
      ++cursor;
    }
    bus->lane.store(cursor << 1, std::memory_order_seq_cst);
    word = cursor << 1;
    // Published between the last look and the store?
    const ReaderGuard guard(log);
    LogSegment* const segment = log.find(cursor);
    if (segment == nullptr || segment->number != cursor / segment_slots) return;
    if ((segment->slots[cursor % segment_slots].load(std::memory_order_seq_cst) & ~slot_bits) == 0) return;
    ticket = cursor;
  }
}

}  // namespace abxbus::detail

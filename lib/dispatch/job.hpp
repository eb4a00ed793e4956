#pragma once

#include <cstdint>

namespace abxbus::detail {

/// What a look at a serial bus shows that has a drain waiting.
enum class DrainLook : std::uint8_t {
  stalled,   ///< scheduled, and nothing moved since the last look: take it
  closed,    ///< somebody wants something else of the bus, for example its end: let go of it
  progress,  ///< scheduled, but somebody else works on it: leave it
  growing,   ///< scheduled, nothing was taken, but events still come: their emitter may be about to run them itself
  nothing    ///< not scheduled at this moment
};

/// What a look remembers for the next one.
struct DrainMemory {
  std::uint64_t turn = 0;
  std::uint64_t tail = 0;
  bool scheduled = true;  ///< the bus waited for a drain at the last look
  /// The turn was given up by a thread that had come for one event and is likely to come for the next.
  bool left_by_caller = false;
};

/// A piece of work for the pool. Intrusive: it is part of an object that exists anyway, so submitting allocates
/// nothing. `run` is called once a submission; the object may be gone when it returns.
struct Job {
  void (*run)(Job*) noexcept = nullptr;
  /// Only drains: looks, with a memory of the last look. Null: run at once.
  DrainLook (*look)(Job*, DrainMemory& memory) noexcept = nullptr;
  /// Only drains: ends the submission without running anything; a bus that waits for a drain submits it again.
  void (*let_go)(Job*) noexcept = nullptr;
};

}  // namespace abxbus::detail

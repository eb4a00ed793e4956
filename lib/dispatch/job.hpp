#pragma once

#include <cstdint>

namespace abxbus::detail {

/// What a look at a serial bus shows that has a drain waiting.
enum class DrainLook : std::uint8_t {
  stalled,   ///< scheduled, and nothing moved since the last look: take it
  progress,  ///< scheduled, but somebody else works on it: leave it
  nothing    ///< not scheduled at this moment
};

/// A piece of work for the pool. Intrusive: it is part of an object that exists anyway, so submitting allocates nothing.
/// `run` is called once a submission; the object may be gone when it returns.
struct Job {
  void (*run)(Job*) noexcept = nullptr;
  /// Only drains: looks, with a memory of the last look. Null: run at once.
  DrainLook (*look)(Job*, std::uint64_t& memory) noexcept = nullptr;
};

}  // namespace abxbus::detail

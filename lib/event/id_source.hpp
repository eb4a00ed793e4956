#pragma once

#include <abxbus/uuid.hpp>

#include <cstdint>

/// Ids that exist as two numbers until somebody asks for them.
namespace abxbus::detail {

/// What an id is made of. `time_ns` comes from the clock (not from a time the user gave: two of those may be equal).
struct IdSeed {
  std::int64_t time_ns = 0;
  std::uint64_t salt = 0;
};

/// Odd, so that the counter visits every value; the golden ratio in 64 bits.
inline constexpr std::uint64_t salt_step = 0x9E3779B97F4A7C15U;

struct ThreadSalt {
  std::uint64_t value = 0;
  bool started = false;
};

inline constinit thread_local ThreadSalt thread_salt{};

/// A start of a new thread's salts: random in the process, and 2^34 steps away from that of the thread before.
std::uint64_t first_salt() noexcept;

/// A number that no other call gives: the threads' counters start so far apart that they meet only after 2^34 ids of
/// one thread or 2^20 threads, and then two ids differ by their time. 2 ns.
inline std::uint64_t next_salt() noexcept {
  ThreadSalt& salt = thread_salt;
  if (!salt.started) [[unlikely]] {
    salt.value = first_salt();
    salt.started = true;
  }
  return salt.value += salt_step;
}

/// A salt for the part `position` of something that has a salt: the results of a run, for example. Different positions
/// give different salts. Give them different times as well where their ids are to be in order: run start + position,
/// and `note_time` of the last one.
inline std::uint64_t part_salt(std::uint64_t salt, std::uint64_t position) noexcept {
  // Away from the salts of the counter, which are steps of the same width.
  return (salt ^ (salt >> 29)) * 0xBF58476D1CE4E5B9U + (position + 1) * salt_step;
}

/// The UUIDv7 of a time and a salt: 48 bits of milliseconds, the nanoseconds within it in the 12 bits after the version
/// and the 8 bits after the variant, 54 bits of the mixed salt.
///
/// Later times give greater ids, whatever the salts (D-ID-2). With the same time, salts that differ in their low 54
/// bits give different ids: the mixing is a bijection of them. 54 and not 62, because times of one thread may be less
/// than the 244 ns apart that the 12 bits resolve.
Uuid make_v7(std::int64_t unix_ns, std::uint64_t salt) noexcept;

inline Uuid make_v7(const IdSeed& seed) noexcept {
  return make_v7(seed.time_ns, seed.salt);
}

}  // namespace abxbus::detail

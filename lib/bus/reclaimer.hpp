#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

/// When a removed callable, list or array may be destroyed.
///
/// Purpose: runs read the registry without a lock and without counting references an event. What is removed is retired
/// here and destroyed when no run can reach it. A run is protected in one of two ways:
///   - it runs under the bus's turn (drain, now() on a free bus): no operation at all. Its holder raises `turn_epoch_`
///     (a plain counter of its own) after each event, and reads the registry's version anew for the next;
///   - otherwise it pins: one increment when it starts, one decrement when it ends.
/// Pins are counted in two epochs. What is retired goes to `current_`; when the other epoch's pins are 0 and the turn
/// has moved on since the last flip, `previous_` is destroyed, `current_` becomes `previous_`, and the epoch flips.
///
/// Dekker pairs (all seq_cst): (pins, epoch): a pinner increments the count of the epoch it read and checks that the
/// epoch is still that; the reclaimer flips, then reads the count. (turn, version): a holder takes the turn, then reads
/// the registry's version; `off` raises the version, then reads the turn. (retired_, turn): `off` marks `retired_`,
/// then reads the turn; a holder frees the turn, then reads `retired_`. Invalid: unpinning another epoch than the one
/// that was pinned.
namespace abxbus::detail {

struct BusCore;

class Reclaimer {
 public:
  struct Item {
    void (*destroy)(void*) noexcept;
    void* object;
  };
  using Pin = std::uint32_t;

  explicit Reclaimer(BusCore& bus) noexcept : bus_(bus) {}
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  Pin pin() noexcept;
  /// For an executor whose handler was cut short: its run may have been protected by the turn alone, which its
  /// successor gives up, so what was retired since the run began is in either list. While that protection still lasts.
  Pin pin_all() noexcept;
  void unpin(Pin pin) noexcept;

  /// Hands an object over for destruction. Callable under the registry mutex: destroys nothing itself.
  void retire(Item item);
  /// Destroys what can be; outside any lock, since it runs destructors of user values.
  void collect() noexcept;
  /// Whether no run that could have read the registry at an older version than the caller has just made (seq_cst) is
  /// reading it still: the pairs (pins, version) and (turn, version).
  bool quiet() const noexcept;
  bool has_retired() const noexcept { return retired_.load(std::memory_order_seq_cst); }

 private:
  static constexpr Pin all_epochs = 2;
  bool turn_has_moved() noexcept;
  /// False: somebody else holds the mutex.
  bool collect_once() noexcept;

  BusCore& bus_;
  std::atomic<std::uint32_t> epoch_{0};
  alignas(64) std::atomic<std::uint32_t> pins_[2] = {0, 0};
  std::atomic<bool> retired_{false};
  /// A collect that found the mutex taken; Dekker with the holder, who releases it and then reads this.
  std::atomic<bool> wanted_{false};
  std::mutex mutex_;  ///< lists and flips; nothing is destroyed inside
  std::vector<Item> current_;
  std::vector<Item> previous_;
  /// State of the turn at the last flip: what its holder had finished, if there was one.
  bool held_at_flip_ = false;
  std::uint64_t epoch_at_flip_ = 0;
};

}  // namespace abxbus::detail

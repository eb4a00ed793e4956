#include "dispatch/exec_slot.hpp"

#include "event/futex.hpp"

#include <pthread.h>
#include <thread>
#include <vector>

namespace abxbus::detail {

namespace {

/// A short section without allocation or user code, entered only when a thread meets a new nesting depth or ends.
class SpinGuard {
 public:
  explicit SpinGuard(std::atomic_flag& flag) noexcept : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~SpinGuard() { flag_.clear(std::memory_order_release); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  std::atomic_flag& flag_;
};

ABXBUS_TLS ExecSlot* first_slot = nullptr;

/// The slots of one thread by nesting depth.
struct ThreadSlots {
  std::vector<ExecSlot*> by_depth;
  ~ThreadSlots() {
    first_slot = nullptr;
    for (ExecSlot* slot : by_depth) slot_pool().give_back(slot);
  }
};

ThreadSlots& thread_slots() {
  thread_local ThreadSlots slots;
  return slots;
}

}  // namespace

ABXBUS_TLS ExecFrame* current_frame = nullptr;

namespace {

/// Written once, before the fork handler that reads it is registered.
SlotPool* slots_of_process = nullptr;

/// In a forked child. The forking thread takes new slots from here on; it may still stand on some of the old ones.
void forget_slots() noexcept {
  slots_of_process->forget_all();
  first_slot = nullptr;
  thread_slots().by_depth.clear();
}

}  // namespace

/// Immortal.
SlotPool& slot_pool() noexcept {
  static SlotPool* const pool = [] {
    slots_of_process = new SlotPool;
    pthread_atfork(nullptr, nullptr, &forget_slots);
    return slots_of_process;
  }();
  return *pool;
}

void SlotPool::forget_all() noexcept {
  free_ = nullptr;
  used_.store(0, std::memory_order_relaxed);
  lock_.clear(std::memory_order_relaxed);
}

ExecSlot* SlotPool::take() {
  {
    const SpinGuard guard(lock_);
    if (free_ != nullptr) {
      ExecSlot* const slot = free_;
      free_ = slot->next_free;
      return slot;
    }
  }
  auto* const fresh = new ExecSlot[block_size];
  const SpinGuard guard(lock_);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  const std::size_t block = used / block_size;
  if (block == max_blocks) {
    delete[] fresh;
    throw std::bad_alloc();
  }
  blocks_[block].store(fresh, std::memory_order_release);
  used_.store(used + block_size, std::memory_order_release);
  for (std::size_t i = 1; i < block_size; ++i) {
    fresh[i].next_free = free_;
    free_ = &fresh[i];
  }
  return &fresh[0];
}

void SlotPool::give_back(ExecSlot* slot) noexcept {
  const SpinGuard guard(lock_);
  slot->next_free = free_;
  free_ = slot;
}

ExecSlot* thread_slot(std::uint32_t depth) {
  if (depth == 0 && first_slot != nullptr) [[likely]]
    return first_slot;
  ThreadSlots& slots = thread_slots();
  while (slots.by_depth.size() <= depth) slots.by_depth.push_back(slot_pool().take());
  if (depth == 0) first_slot = slots.by_depth[0];
  return slots.by_depth[depth];
}

bool try_take(ExecSlot& slot, std::uint64_t expected) noexcept {
  while ((expected & slot_state_mask) == slot_running) {
    if ((expected & slot_pin) != 0) {  // the watchdog reads names: a few microseconds
      cpu_pause();
      const std::uint64_t now = slot.word.load(std::memory_order_acquire);
      if ((now & ~slot_pin) != (expected & ~slot_pin)) return false;
      expected = now;
      continue;
    }
    std::uint64_t wanted = expected;
    if (slot.word.compare_exchange_strong(wanted, (expected & ~slot_state_mask) | slot_taken, std::memory_order_acq_rel,
                                          std::memory_order_acquire))
      return true;
    if ((wanted & ~slot_pin) != (expected & ~slot_pin)) return false;
    expected = wanted;
  }
  return false;
}

void mark_settled(ExecSlot& slot) noexcept {
  const std::uint64_t word = slot.word.load(std::memory_order_relaxed);
  slot.settled_signal.fetch_add(1, std::memory_order_relaxed);
  slot.word.store((word & ~slot_state_mask) | slot_settled, std::memory_order_release);
  // The executor may leave from here on; slots are never unmapped, so the wake is at worst spurious.
  slot.settled_signal.fetch_add(1, std::memory_order_release);
  futex_wake(slot.settled_signal, INT32_MAX);  // the executor, and whoever ends the bus (wait_for_takers)
}

bool leave_slot(ExecSlot& slot, std::uint64_t running) noexcept {
  std::uint64_t word = running;
  const std::uint64_t idle = (running & ~(slot_state_mask | slot_pin));
  while (!slot.word.compare_exchange_strong(word, idle, std::memory_order_acq_rel, std::memory_order_acquire)) {
    if ((word & slot_state_mask) == slot_running) {  // pinned
      cpu_pause();
      word = running;
      continue;
    }
    for (;;) {
      const std::uint32_t signal = slot.settled_signal.load(std::memory_order_acquire);
      if ((slot.word.load(std::memory_order_acquire) & slot_state_mask) == slot_settled) break;
      futex_wait(slot.settled_signal, signal, no_deadline);
    }
    slot.word.store(idle, std::memory_order_release);
    return false;
  }
  return true;
}

}  // namespace abxbus::detail

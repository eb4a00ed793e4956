#include "event/memory.hpp"

#include "event/thread_state.hpp"

#include <abxbus/memory.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#if defined(ABXBUS_WITH_MIMALLOC)
#include <mimalloc.h>
#else
#include <cstdlib>
#include <malloc.h>
#endif

namespace abxbus::detail {

void* allocate(std::size_t bytes) {
#if defined(ABXBUS_WITH_MIMALLOC)
  void* block = mi_malloc(bytes);
#else
  void* block = std::malloc(bytes);
#endif
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void deallocate(void* block) noexcept {
#if defined(ABXBUS_WITH_MIMALLOC)
  mi_free(block);
#else
  std::free(block);
#endif
}

std::size_t usable_bytes(void* block) noexcept {
#if defined(ABXBUS_WITH_MIMALLOC)
  return mi_usable_size(block);
#else
  return malloc_usable_size(block);
#endif
}

namespace {

/// Hands out small numbers to threads and takes them back when they end.
class ThreadSlots {
 public:
  std::uint32_t take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return next_++;
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::uint32_t slot) {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 1;
};

ThreadSlots& thread_slots() {
  static auto* slots = new ThreadSlots;
  return *slots;
}

/// Where this thread found its cells lately; direct-mapped by account.
struct CellCache {
  static constexpr std::size_t size = 16;
  std::uint64_t uid[size];
  MemoryCell* cell[size];
};

ABXBUS_TLS CellCache my_cache{};
/// 0: not taken yet.
ABXBUS_TLS std::uint32_t my_slot = 0;

/// Gives the slot back when the thread ends. A destructor of the user's that runs even later takes another one, which
/// then stays taken: a number and a cell, once for such a thread.
struct SlotReturn {
  ~SlotReturn() {
    my_cache = {};
    thread_slots().give_back(my_slot);
    my_slot = 0;
  }
};

std::uint32_t this_thread_slot() {
  if (my_slot == 0) {
    my_slot = thread_slots().take();
    thread_local SlotReturn at_exit;
    static_cast<void>(at_exit);
  }
  return my_slot;
}

/// Pairs with nothing: only uniqueness counts.
std::atomic<std::uint64_t> next_account{1};

}  // namespace

MemoryAccount::MemoryAccount() noexcept : uid_(next_account.fetch_add(1, std::memory_order_relaxed)) {}

MemoryAccount::~MemoryAccount() {
  MemoryCell* cell = cells_.load(std::memory_order_acquire);
  while (cell != nullptr) {
    MemoryCell* next = cell->next;
    delete cell;
    cell = next;
  }
}

MemoryCell& MemoryAccount::cell() noexcept {
  const std::size_t index = uid_ % CellCache::size;
  if (my_cache.uid[index] == uid_) [[likely]]
    return *my_cache.cell[index];
  return find_cell();
}

MemoryCell& MemoryAccount::find_cell() noexcept {
  const std::uint32_t slot = this_thread_slot();
  MemoryCell* found = cells_.load(std::memory_order_acquire);
  while (found != nullptr && found->thread_slot != slot) found = found->next;
  if (found == nullptr) {
    found = new MemoryCell;
    found->thread_slot = slot;
    found->next = cells_.load(std::memory_order_relaxed);
    while (!cells_.compare_exchange_weak(found->next, found, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  const std::size_t index = uid_ % CellCache::size;
  my_cache.uid[index] = uid_;
  my_cache.cell[index] = found;
  return *found;
}

std::int64_t MemoryAccount::bytes() const noexcept {
  std::int64_t sum = 0;
  for (MemoryCell* each = cells_.load(std::memory_order_acquire); each != nullptr; each = each->next)
    sum += each->bytes.load(std::memory_order_relaxed);
  return sum;
}

std::int64_t MemoryAccount::events() const noexcept {
  std::int64_t sum = 0;
  for (MemoryCell* each = cells_.load(std::memory_order_acquire); each != nullptr; each = each->next)
    sum += each->events.load(std::memory_order_acquire);
  return sum;
}

std::int64_t MemoryAccount::sample_peak() noexcept {
  const std::int64_t now = bytes();
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return now;
}

}  // namespace abxbus::detail

namespace abxbus {

ProcessMemory process_memory() noexcept {
  ProcessMemory use;
#if defined(ABXBUS_WITH_MIMALLOC)
  std::size_t elapsed = 0, user = 0, system = 0, faults = 0;
  mi_process_info(&elapsed, &user, &system, &use.resident_bytes, &use.peak_resident_bytes, &use.committed_bytes,
                  &use.peak_committed_bytes, &faults);
  // Where the allocator cannot ask for the resident size it reports what is committed; the peak comes from the system.
  use.resident_bytes = std::min(use.resident_bytes, use.peak_resident_bytes);
#endif
  return use;
}

}  // namespace abxbus

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// Memory of events, and who pays for it.
///
/// Every byte an event costs comes from `allocate` (mimalloc, or the system allocator) and is charged, as usable bytes,
/// to a MemoryAccount: that of the bus which accepted the event first. An account is a list of cells, one a thread
/// slot, so that charging is two plain stores on a line of the charging thread's own.
///
/// Threads: any. Memory ordering: a cell has one writer at a time, the thread that owns its slot (slots are handed from
/// an ending thread to a new one under a mutex); readers sum acquire loads. A sum is exact once no charge is in
/// progress; while the account can only fall, a sum of 0 proves that everything has been released, because each cell
/// is monotonic then.
namespace abxbus::detail {

void* allocate(std::size_t bytes);
void deallocate(void* block) noexcept;
/// Bytes that the block really occupies.
std::size_t usable_bytes(void* block) noexcept;

/// One thread's share of an account.
struct alignas(64) MemoryCell {
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> events{0};
  std::uint32_t thread_slot = 0;
  MemoryCell* next = nullptr;  ///< constant after publication
};

class MemoryAccount {
 public:
  MemoryAccount() noexcept;
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  void charge(std::int64_t bytes, std::int64_t events) noexcept {
    MemoryCell& mine = cell();
    mine.bytes.store(mine.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    // Release: whoever sums the events to 0 frees the bus, and must see everything done before the last release.
    mine.events.store(mine.events.load(std::memory_order_relaxed) + events, std::memory_order_release);
  }
  std::int64_t bytes() const noexcept;
  std::int64_t events() const noexcept;
  /// Raises the peak to the present sum.
  std::int64_t sample_peak() noexcept;
  std::int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  MemoryCell& cell() noexcept;
  MemoryCell& find_cell() noexcept;

  std::uint64_t uid_;
  /// Push-only list; release on push pairs with acquire in readers.
  std::atomic<MemoryCell*> cells_{nullptr};
  std::atomic<std::int64_t> peak_{0};
};

}  // namespace abxbus::detail

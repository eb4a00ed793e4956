#pragma once

#include "dispatch/job.hpp"
#include "dispatch/timer_heap.hpp"

#include <concurrentqueue.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <optional>

/// The threads that run handlers.
///
/// Purpose: jobs go into two moodycamel queues, one of drains and one of the rest, and are run inside one TBB arena, by
/// TBB's workers first (a library task that runs dry lingers a moment on `state_` before it returns to TBB) and by
/// threads of our own, which join when runnable work exists and every thread in the pool is blocked: at once when a
/// thread blocks inside the library, within about a millisecond when it blocks in user code (stall check), and up to
/// the configured number of workers without delay where TBB has fewer. Own threads retire when idle.
///
/// State: one word, so that every decision below is one order of read-modify-writes and needs no Dekker pair.
///   pending   jobs in the inbox that nobody has taken
///   spinning  threads that look at the word, woken ones on their way included
///   parked    own threads asleep
///   inside    threads of the pool that wait inside the library
///   threads   library tasks on TBB's workers plus own threads
///
/// Submit: enqueue, pending + 1; nobody spinning -> one thread is called (wake, TBB task, own thread, or stall check).
/// Take: pending - 1 gives the right to one job that is already in the inbox. A spinner leaves only by a
/// compare-exchange on a word with pending == 0, so a job submitted before that is not lost; one submitted after sees
/// spinning reduced.
/// Drain jobs (Job::look): a thread that lingers leaves a serial bus to a caller that makes progress with it and looks
/// every 3 us; it takes over only when nothing moved between two looks.
/// Threads: any. Memory ordering: submit's read-modify-write of `state_` is a release, take's an acquire: a job's
/// contents, written before submit, are visible to whoever runs it.
namespace abxbus::detail {

class WorkerPool {
 public:
  WorkerPool(int workers, std::int64_t inline_floor_ns);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// `at_once`: for what is late already, a deadline's consequences; a thread is called even if others may be back
  /// soon.
  enum class Urgency : std::uint8_t { usual, at_once };
  void submit(Job* job, Urgency urgency = Urgency::usual) noexcept;
  /// Whether jobs wait that nobody has taken. A hint.
  bool has_waiting_jobs() const noexcept;
  int workers() const noexcept { return workers_; }
  /// The core on which a job was started last; -1: none. A hint.
  int last_start_core() const noexcept { return start_core_.load(std::memory_order_relaxed); }
  std::int64_t inline_floor_ns() const noexcept { return inline_floor_ns_; }
  /// The user's executor is gone: own threads leave. The pool itself stays (a timer may still name it); it is small.
  void retire() noexcept;
  /// Another executor takes over a pool that was told to retire.
  void revive() noexcept { retiring_.store(false, std::memory_order_release); }
  /// Workers as asked for; 0: as many as there are cores.
  int wanted_workers() const noexcept { return wanted_workers_; }

  /// The pool whose thread this is; null elsewhere.
  static WorkerPool* of_this_thread() noexcept;
  /// A thread of the pool is about to wait inside the library / goes on.
  void enter_wait() noexcept;
  void leave_wait() noexcept;

  /// Threads of the pool that run or look for work now. A hint.
  int runnable() const noexcept;
  /// Threads in the pool now; for tests.
  int threads() const noexcept;

 private:
  enum class Thread { tbb, own };

  void work(Thread kind) noexcept;
  __attribute__((noinline)) void arrive() noexcept;
  enum class Order : std::uint8_t { by_turns, drains_first };
  Job* take(std::uint64_t also_subtract, Order order = Order::by_turns) noexcept;
  Job* linger(bool& surplus, Job* in_hand) noexcept;
  static DrainMemory first_look(Job* job) noexcept;
  static bool waits_for_caller(Job* job) noexcept;
  void stop_spinning(Job* in_hand) noexcept;
  void hand_on(std::uint64_t word, Job* in_hand) noexcept;
  int lookers(std::uint64_t word) const noexcept;
  bool somebody_looks(std::uint64_t word) const noexcept;
  void give_back(class HeldDrains& held) noexcept;
  bool leave(Thread kind, bool surplus) noexcept;
  bool park(Thread kind) noexcept;
  void call_thread(std::uint64_t word) noexcept;
  bool wake_parked() noexcept;
  void start_own_thread() noexcept;
  void arm_stall_check() noexcept;
  void stall_check() noexcept;
  Job* dequeue(Order order) noexcept;

  const int wanted_workers_;
  const int workers_;
  const int tbb_limit_;
  const std::int64_t inline_floor_ns_;
  /// Written by submitters, takers and lingerers alike: this is the hand-over itself.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  /// Where the last submission came from; relaxed, a hint for spinners: the thread they wait for may be on their core.
  std::atomic<int> submit_core_{-1};
  /// Permits for parked threads; a waker has already turned `parked` into `spinning` for them.
  alignas(64) std::atomic<std::uint32_t> permits_{0};
  /// Library tasks on TBB's workers. Acq_rel increments; a limit, not a hand-over.
  std::atomic<int> tbb_tasks_{0};
  /// Of the spinners, those that TBB has been asked for and not sent yet: it can take TBB a millisecond, so nobody
  /// relies on them. Seq_cst increment before the stall check is armed, seq_cst loads after a change of `state_`: who
  /// reads it too early is covered by that check. Relaxed decrement: a stale value calls a thread too many.
  std::atomic<int> tbb_arriving_{0};
  std::atomic<bool> retiring_{false};
  /// Jobs started; relaxed, read by the stall check.
  alignas(64) std::atomic<std::uint64_t> started_{0};
  /// When the last one was; relaxed, a hint for submitters.
  std::atomic<std::uint64_t> last_start_{0};
  /// And where; relaxed, a hint for those who wait for a job's outcome.
  std::atomic<int> start_core_{-1};
  /// Stall check armed: one at a time. Seq_cst, Dekker with `state_`: a submitter changes `state_`, then reads this;
  /// the check clears this, then reads `state_`.
  alignas(64) std::atomic<bool> stall_armed_{false};
  std::uint64_t stall_seen_ = 0;     ///< under stall_armed_
  std::int64_t stall_interval_ = 0;  ///< under stall_armed_
  std::atomic<bool> bound_warned_{false};
  using Inbox = moodycamel::ConcurrentQueue<Job*>;
  Inbox& inbox_of(const Job* job) noexcept;
  Inbox drains_;
  Inbox others_;
  tbb::task_arena arena_;
};

/// Marks the calling thread as waiting inside the library for the pool it belongs to, if any.
class WaitScope {
 public:
  WaitScope() noexcept : pool_(WorkerPool::of_this_thread()) {
    if (pool_ != nullptr) pool_->enter_wait();
  }
  ~WaitScope() {
    if (pool_ != nullptr) pool_->leave_wait();
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  WorkerPool* pool_;
};

}  // namespace abxbus::detail

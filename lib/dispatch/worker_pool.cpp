#include "dispatch/worker_pool.hpp"

#include "dispatch/held_drains.hpp"
#include "dispatch/watchdog.hpp"
#include "event/clock.hpp"
#include "event/futex.hpp"
#include "event/log.hpp"
#include "event/process.hpp"
#include "event/thread_state.hpp"

#include <oneapi/tbb/info.h>

#include <algorithm>
#include <pthread.h>
#include <system_error>
#include <thread>

namespace abxbus::detail {

namespace {

ABXBUS_TLS WorkerPool* pool_of_thread = nullptr;

constexpr int max_own_threads = 1022;
constexpr std::int64_t first_stall_interval_ns = 1'000'000;
constexpr std::int64_t next_stall_interval_ns = 300'000;
constexpr std::int64_t least_stall_interval_ns = 125'000;
constexpr std::int64_t retire_after_ns = 2'000'000'000;
/// How long a worker of TBB sleeps here before it goes back to TBB, where it would look for work for a whole
/// millisecond, yielding: on a machine with few cores that costs a woken thread up to this millisecond.
constexpr std::int64_t tbb_retire_after_ns = 2'000'000;
/// Pauses between two yields: below 1 us. A yield alone on a core costs 0.3 us.
constexpr int yield_pauses = 50;

/// About 20 us at the usual 2 to 3 GHz of a time stamp counter.
constexpr std::uint64_t short_job_ticks = 50'000;

// Each count of threads has room for all of them: several hundred blocked handlers may come back, and look for work, at
// the same moment.
constexpr int pending_bits = 24, count_bits = 10;
constexpr std::uint64_t pending_mask = (1ULL << pending_bits) - 1, count_mask = (1ULL << count_bits) - 1;
static_assert(pending_bits + 4 * count_bits == 64 && max_own_threads < count_mask);

constexpr std::uint64_t pending_one = 1;
constexpr std::uint64_t spinning_one = 1ULL << pending_bits;
constexpr std::uint64_t parked_one = spinning_one << count_bits;
constexpr std::uint64_t inside_one = parked_one << count_bits;
constexpr std::uint64_t threads_one = inside_one << count_bits;

std::uint64_t pending(std::uint64_t word) {
  return word & pending_mask;
}
std::uint64_t spinning(std::uint64_t word) {
  return word / spinning_one & count_mask;
}
std::uint64_t parked(std::uint64_t word) {
  return word / parked_one & count_mask;
}
std::uint64_t inside(std::uint64_t word) {
  return word / inside_one & count_mask;
}
std::uint64_t threads_in(std::uint64_t word) {
  return word / threads_one;
}

/// Threads that run a job, as far as can be seen.
std::uint64_t running(std::uint64_t word) {
  const std::uint64_t others = spinning(word) + parked(word) + inside(word);
  return threads_in(word) > others ? threads_in(word) - others : 0;
}

/// Lingering pays only where another core can produce meanwhile.
bool may_linger() noexcept {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

}  // namespace

WorkerPool::WorkerPool(int workers, std::int64_t inline_floor_ns)
    : wanted_workers_(workers),
      workers_(workers > 0 ? workers : std::max(1, tbb::info::default_concurrency())),
      tbb_limit_(process_forked() ? 0 : std::min(workers_, std::max(1, tbb::info::default_concurrency() - 1))),
      inline_floor_ns_(inline_floor_ns),
      drains_(256),
      others_(256),
      arena_(max_own_threads + std::max(1, tbb_limit_), max_own_threads) {}

WorkerPool* WorkerPool::of_this_thread() noexcept {
  return pool_of_thread;
}

int WorkerPool::runnable() const noexcept {
  const std::uint64_t word = state_.load(std::memory_order_relaxed);
  return static_cast<int>(threads_in(word)) - static_cast<int>(parked(word)) - static_cast<int>(inside(word));
}

int WorkerPool::threads() const noexcept {
  return static_cast<int>(threads_in(state_.load(std::memory_order_relaxed)));
}

bool WorkerPool::has_waiting_jobs() const noexcept {
  return pending(state_.load(std::memory_order_relaxed)) != 0;
}

/// Spinners that really look, or are on a way that takes no longer than a wake.
int WorkerPool::lookers(std::uint64_t word) const noexcept {
  return static_cast<int>(spinning(word)) - tbb_arriving_.load(std::memory_order_seq_cst);
}
bool WorkerPool::somebody_looks(std::uint64_t word) const noexcept {
  return lookers(word) > 0;
}

void WorkerPool::submit(Job* job, Urgency urgency) noexcept {
  submit_core_.store(current_core(), std::memory_order_relaxed);
  inbox_of(job).enqueue(job);
  // Release: pairs with the taker's acquire. Spinners, waiters and submitters all decide by read-modify-writes of this
  // one word; seq_cst for those words beside it that say who may be relied on (Dekker state_, stall_armed_ and state_,
  // tbb_arriving_).
  const std::uint64_t before = state_.fetch_add(pending_one, std::memory_order_seq_cst);
  if (somebody_looks(before)) return;
  // From outside: a worker that began its job a moment ago is mostly back in a moment, and a wake would cost more than
  // it saves. If that one stays away, the stall check notices.
  // Nor does it when as many run as there are cores for. Among the workers themselves neither holds: one that submits
  // is about to run something that may block.
  const std::uint64_t busy = running(before);
  if (urgency == Urgency::usual && pool_of_thread != this && busy != 0 &&
      (busy >= static_cast<std::uint64_t>(workers_) ||
       read_ticks() - last_start_.load(std::memory_order_relaxed) < short_job_ticks)) {
    arm_stall_check();
    return;
  }
  call_thread(before + pending_one);
}

WorkerPool::Inbox& WorkerPool::inbox_of(const Job* job) noexcept {
  return job->look != nullptr ? drains_ : others_;
}

Job* WorkerPool::dequeue(Order order) noexcept {
  // By turns from either inbox: a fan-out that brings in one thread after the other would else keep a drain waiting for
  // all of them, since the queue prefers what its newest producers have put in.
  const bool drains_first = order == Order::drains_first || started_.load(std::memory_order_relaxed) % 2 == 0;
  Inbox& first = drains_first ? drains_ : others_;
  Inbox& second = drains_first ? others_ : drains_;
  Job* job = nullptr;
  // The right to a job was taken after it was enqueued; only a false empty of the queue can delay it.
  while (!first.try_dequeue(job) && !second.try_dequeue(job)) cpu_pause();
  return job;
}

/// What one look at a drain that has just been taken shows; nothing for other jobs.
DrainMemory WorkerPool::first_look(Job* job) noexcept {
  DrainMemory memory;
  if (job->look != nullptr) static_cast<void>(job->look(job, memory));
  return memory;
}

/// Takes the right to a job, if there is one, and gives up `also_subtract` (a spinner's mark) in the same step.
Job* WorkerPool::take(std::uint64_t also_subtract, Order order) noexcept {
  std::uint64_t word = state_.load(std::memory_order_relaxed);
  while (pending(word) != 0) {
    const std::uint64_t next = word - pending_one - also_subtract;
    if (state_.compare_exchange_weak(word, next, std::memory_order_seq_cst, std::memory_order_relaxed)) {
      Job* const job = dequeue(order);
      // More work and nobody looking: hand the duty on before user code is entered.
      if (pending(next) != 0 && !somebody_looks(next)) hand_on(next, job);
      return job;
    }
  }
  return nullptr;
}

void WorkerPool::call_thread(std::uint64_t word) noexcept {
  for (;;) {
    if (pending(word) == 0 || somebody_looks(word)) return;
    if (parked(word) != 0) {
      if (state_.compare_exchange_weak(word, word - parked_one + spinning_one, std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
        permits_.fetch_add(1, std::memory_order_release);
        futex_wake(permits_, 1);
        return;
      }
      continue;
    }
    const bool use_tbb =
        tbb_arriving_.load(std::memory_order_relaxed) == 0 && tbb_tasks_.load(std::memory_order_relaxed) < tbb_limit_;
    const std::uint64_t total = threads_in(word);
    if (use_tbb || total < static_cast<std::uint64_t>(workers_) || inside(word) >= total) {
      if (total >= max_own_threads) break;
      if (!state_.compare_exchange_weak(word, word + spinning_one + threads_one, std::memory_order_acq_rel,
                                        std::memory_order_relaxed))
        continue;
      if (use_tbb && tbb_tasks_.fetch_add(1, std::memory_order_acq_rel) < tbb_limit_) {
        // TBB's workers may be busy with the user's own work. Marked first, armed then: who relied on this thread
        // because it read the mark too early submitted before, and the check finds that job.
        tbb_arriving_.fetch_add(1, std::memory_order_seq_cst);
        arm_stall_check();
        try {
          // Not to be seen by ThreadSanitizer: the read of what the task captured. oneTBB, built without
          // instrumentation, orders it behind the write; a suppression would need the writer's stack, which may be
          // lost.
          arena_.enqueue([this]() __attribute__((no_sanitize("thread"))) { arrive(); });
          return;
        } catch (...) {
          tbb_arriving_.fetch_sub(1, std::memory_order_relaxed);
          tbb_tasks_.fetch_sub(1, std::memory_order_relaxed);
        }
      } else if (use_tbb) {
        tbb_tasks_.fetch_sub(1, std::memory_order_relaxed);
      }
      start_own_thread();
      return;
    }
    break;
  }
  arm_stall_check();
}

/// A worker of TBB that was called is there.
void WorkerPool::arrive() noexcept {
  // The word that led here orders what the caller did before, for ThreadSanitizer too.
  static_cast<void>(state_.load(std::memory_order_acquire));
  tbb_arriving_.fetch_sub(1, std::memory_order_relaxed);
  work(Thread::tbb);
}

void WorkerPool::start_own_thread() noexcept {
  try {
    std::thread([this] {
      pthread_setname_np(pthread_self(), "abxbus-worker");
      if (process_forked()) {
        work(Thread::own);
      } else {
        arena_.execute([this] { work(Thread::own); });
      }
    }).detach();
  } catch (const std::system_error&) {
    state_.fetch_sub(spinning_one + threads_one, std::memory_order_seq_cst);
    if (!bound_warned_.exchange(true, std::memory_order_relaxed))
      log(LogLevel::warning, "abxbus: no further worker thread can be created; blocked handlers delay others");
    arm_stall_check();
  }
}

/// A job just taken is a drain that its caller is likely to come back for: not run at once but looked at for a while.
bool WorkerPool::waits_for_caller(Job* job) noexcept {
  return job != nullptr && may_linger() && first_look(job).left_by_caller;
}

void WorkerPool::work(Thread kind) noexcept {
  WorkerPool* const outer = std::exchange(pool_of_thread, this);
  bool spinner = true;  // a thread is called as one
  Job* in_hand = nullptr;
  for (;;) {
    if (!spinner) state_.fetch_add(spinning_one, std::memory_order_acq_rel);
    spinner = true;
    Job* job = nullptr;
    if (in_hand == nullptr) {
      job = take(spinning_one);
      if (waits_for_caller(job)) {
        in_hand = job;
        spinner = false;
        continue;
      }
    }
    bool surplus = false;
    if (job == nullptr) job = linger(surplus, std::exchange(in_hand, nullptr));
    if (job == nullptr) {
      if (leave(kind, surplus)) break;
      continue;  // woken, or a job came: still a spinner
    }
    spinner = false;
    while (job != nullptr) {
      started_.fetch_add(1, std::memory_order_relaxed);
      last_start_.store(read_ticks(), std::memory_order_relaxed);
      start_core_.store(current_core(), std::memory_order_relaxed);
      job->run(job);
      job = take(0);
      if (waits_for_caller(job)) in_hand = std::exchange(job, nullptr);
    }
  }
  pool_of_thread = outer;
}

/// What a thread held goes back when it turns to something else: another one may look after it. A drain whose bus does
/// not wait for it is let go of, which calls nobody and, unlike running it, cannot lead into a handler.
void WorkerPool::give_back(HeldDrains& held) noexcept {
  bool scheduled = true;
  while (Job* const job = held.take_any(scheduled)) {
    if (scheduled) {
      submit(job);
    } else {
      job->let_go(job);
    }
  }
}

/// Looks for a job as a spinner. Null: nothing came; the mark is still there.
Job* WorkerPool::linger(bool& surplus, Job* in_hand) noexcept {
  HeldDrains held;
  if (in_hand != nullptr) held.add(in_hand);
  Job* found = nullptr;
  const int limit = may_linger() ? linger_pauses : 1;
  for (int i = 0; i < limit && found == nullptr; ++i) {
    if (pending(state_.load(std::memory_order_relaxed)) != 0) {
      // Drains first: they can be held, so that this thread turns to another job with nothing left behind it.
      Job* const job = take(0, Order::drains_first);
      if (job != nullptr) {
        if (job->look == nullptr || !may_linger()) {
          found = job;
          break;
        }
        if (held.full()) found = held.take_oldest();
        held.add(job);
        i = 0;
        continue;
      }
    }
    cpu_pause();
    // One thread that looks is enough; a second one takes a core from those that work.
    if (i % 32 == 31 && lookers(state_.load(std::memory_order_relaxed)) > 1) {
      surplus = true;
      give_back(held);
      return nullptr;
    }
    if (i % yield_pauses == yield_pauses - 1 && yield_core(submit_core_.load(std::memory_order_relaxed)) &&
        held.empty())
      break;
    if (!held.empty() && i % look_pauses == look_pauses - 1) {
      bool progress = false;
      found = held.look(progress);
      if (progress) i = 0;
    }
  }
  if (found == nullptr) found = held.take_any();
  if (found == nullptr) return nullptr;
  stop_spinning(found);
  give_back(held);
  return found;
}

/// Gives the mark up with a job in hand; whatever came meanwhile gets another thread.
void WorkerPool::stop_spinning(Job* in_hand) noexcept {
  const std::uint64_t word = state_.fetch_sub(spinning_one, std::memory_order_seq_cst) - spinning_one;
  if (pending(word) != 0 && !somebody_looks(word)) hand_on(word, in_hand);
}

/// Jobs wait, and this thread turns to `in_hand`. A drain that has nothing to do is over before another thread is
/// there.
void WorkerPool::hand_on(std::uint64_t word, Job* in_hand) noexcept {
  if (first_look(in_hand).scheduled) {
    call_thread(word);
  } else {
    arm_stall_check();
  }
}

/// A spinner that found nothing parks. False: work came, now or later; true: the thread leaves the pool.
bool WorkerPool::leave(Thread kind, bool surplus) noexcept {
  std::uint64_t word = state_.load(std::memory_order_relaxed);
  const bool go = retiring_.load(std::memory_order_acquire);
  const std::uint64_t change = go ? spinning_one + threads_one : spinning_one - parked_one;
  // A surplus one may leave work behind: the other spinner comes for it, and of two that are surplus to each other one
  // stays, since the other's leaving is in the word.
  while (surplus ? lookers(word) > 1 : pending(word) == 0) {
    if (state_.compare_exchange_weak(word, word - change, std::memory_order_seq_cst, std::memory_order_relaxed)) {
      if (!go && !park(kind)) return false;
      if (kind == Thread::tbb) tbb_tasks_.fetch_sub(1, std::memory_order_acq_rel);
      return true;
    }
  }
  return false;
}

/// Sleeps until a waker has made this thread a spinner (false), or it retires (true).
bool WorkerPool::park(Thread kind) noexcept {
  const std::int64_t limit = kind == Thread::tbb ? tbb_retire_after_ns : retire_after_ns;
  std::int64_t deadline = steady_ns() + limit;
  for (;;) {
    std::uint32_t permits = permits_.load(std::memory_order_acquire);
    while (permits != 0) {
      if (permits_.compare_exchange_weak(permits, permits - 1, std::memory_order_acquire, std::memory_order_acquire))
        return false;
    }
    futex_wait(permits_, 0, deadline);
    if (steady_ns() < deadline && !retiring_.load(std::memory_order_acquire)) continue;
    // The wake-up may have been meant for whoever is parked: leaving with a permit there would leave it asleep.
    if (permits_.load(std::memory_order_acquire) != 0) continue;
    std::uint64_t word = state_.load(std::memory_order_relaxed);
    // parked == 0: a waker has counted on this thread already; its permit is on the way.
    while (parked(word) != 0 && pending(word) == 0) {
      if (state_.compare_exchange_weak(word, word - parked_one - threads_one, std::memory_order_acq_rel,
                                       std::memory_order_relaxed))
        return true;
    }
    deadline = steady_ns() + limit / 8;
  }
}

void WorkerPool::enter_wait() noexcept {
  const std::uint64_t word = state_.fetch_add(inside_one, std::memory_order_seq_cst) + inside_one;
  if (pending(word) != 0 && !somebody_looks(word)) call_thread(word);
}

void WorkerPool::leave_wait() noexcept {
  state_.fetch_sub(inside_one, std::memory_order_acq_rel);
}

void WorkerPool::arm_stall_check() noexcept {
  // Reading true: either the check has not cleared the mark yet, and will look at `state_` again after it has, or it
  // is still to come.
  if (stall_armed_.load(std::memory_order_seq_cst) || stall_armed_.exchange(true, std::memory_order_seq_cst)) return;
  stall_seen_ = started_.load(std::memory_order_relaxed);
  stall_interval_ = first_stall_interval_ns;
  watchdog().arm(
      steady_ns() + stall_interval_, [](void* self) { static_cast<WorkerPool*>(self)->stall_check(); }, this);
}

/// On the watchdog's thread: work has been waiting for an interval. Nothing started meanwhile: one more thread.
void WorkerPool::stall_check() noexcept {
  const std::uint64_t word = state_.load(std::memory_order_acquire);
  if (pending(word) == 0) {
    // Dekker (state_, stall_armed_), all seq_cst: who submitted between the look above and this store, and saw the
    // check still armed, changed `state_` before it read the mark; so the load below sees the job.
    stall_armed_.store(false, std::memory_order_seq_cst);
    if (pending(state_.load(std::memory_order_seq_cst)) != 0) arm_stall_check();
    return;
  }
  const std::uint64_t started = started_.load(std::memory_order_relaxed);
  if (started > stall_seen_) {
    // Work still waits although something started: what has to start next may be what is held up. Look again sooner.
    stall_seen_ = started;
    stall_interval_ = next_stall_interval_ns;
  } else {
    std::uint64_t now = word;
    for (;;) {
      if (pending(now) == 0) break;
      if (parked(now) != 0) {
        if (!state_.compare_exchange_weak(now, now - parked_one + spinning_one, std::memory_order_acq_rel)) continue;
        permits_.fetch_add(1, std::memory_order_release);
        futex_wake(permits_, 1);
        break;
      }
      if (threads_in(now) >= max_own_threads) {
        if (!bound_warned_.exchange(true, std::memory_order_relaxed))
          log(LogLevel::warning, "abxbus: too many blocked handlers, no further worker thread is created");
        break;
      }
      if (!state_.compare_exchange_weak(now, now + spinning_one + threads_one, std::memory_order_acq_rel)) continue;
      start_own_thread();
      break;
    }
    // The new thread's first job is this check's doing and no progress of the others.
    stall_seen_ = started + 1;
    stall_interval_ = std::max(least_stall_interval_ns, stall_interval_ / 2);
  }
  watchdog().arm(
      steady_ns() + stall_interval_, [](void* self) { static_cast<WorkerPool*>(self)->stall_check(); }, this);
}

void WorkerPool::retire() noexcept {
  retiring_.store(true, std::memory_order_release);
  permits_.fetch_add(0, std::memory_order_release);
  futex_wake(permits_, INT32_MAX);
}

}  // namespace abxbus::detail

#pragma once

#include "harness/clock.hpp"

#include <concurrentqueue.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace abxbus::perf {

/// The program to compare with: what a capable programmer writes in an afternoon over the same queue, the same arena
/// and the same allocator. It moves nodes of a fixed size, runs handlers, keeps a bounded history, and stores three
/// clock readings an event and two a handler. It has no ids, timeouts, lineage, results, errors or search.

/// One event. As large as one of the library's, so that both move as much memory.
struct alignas(64) Node {
  std::atomic<int> references{2};  ///< the emitter's and the history's
  std::atomic<std::uint32_t> done{0};
  std::uint64_t created = 0;
  std::uint64_t started = 0;
  std::uint64_t completed = 0;
  struct HandlerResult* results = nullptr;  ///< of a fan-out, else none
  std::int64_t value = 0;
  std::int64_t batch_id = 0;
  std::byte reserve[192]{};
};
static_assert(sizeof(Node) == 256);

/// One handler's result in a fan-out.
struct alignas(64) HandlerResult {
  std::uint64_t started = 0;
  std::uint64_t completed = 0;
  const void* handler = nullptr;
};

Node* make_node(std::int64_t value, std::int64_t batch_id);
void release(Node* node) noexcept;

/// The emitter's reference.
struct Releaser {
  void operator()(Node* node) const noexcept { release(node); }
};
using NodePtr = std::unique_ptr<Node, Releaser>;

class MiniBus {
 public:
  using Handler = std::function<void(const Node&)>;

  MiniBus(tbb::task_arena& arena, std::size_t history_size);
  MiniBus(const MiniBus&) = delete;
  MiniBus& operator=(const MiniBus&) = delete;
  ~MiniBus();

  std::size_t on(Handler handler);
  void off(std::size_t id);
  std::size_t handler_count() const;

  NodePtr emit(std::int64_t value, std::int64_t batch_id = 0);
  /// Waits until the event is handled.
  static void now(const Node& node);
  void wait_until_idle();

 private:
  struct Registration {
    std::size_t id;
    Handler handler;
  };
  using Handlers = std::vector<Registration>;

  std::shared_ptr<const Handlers> snapshot() const;
  void copy_handlers_if_shared();
  void drain();
  void run(Node& node, const Handlers& handlers);
  static void fan_out(Node& node, const Handlers& handlers);
  void remember(Node* node);

  tbb::task_arena& arena_;
  moodycamel::ConcurrentQueue<Node*> queue_;
  std::atomic<std::size_t> pending_{0};  ///< emitted and not handled; who raises it from 0 starts a drain
  std::atomic<int> drains_{0};           ///< that still touch this object
  mutable std::mutex mutex_;
  std::shared_ptr<Handlers> handlers_ = std::make_shared<Handlers>();  ///< under the mutex; copied when shared
  std::size_t next_id_ = 0;
  std::vector<Node*> history_;  ///< a ring; the drain's
  std::size_t history_next_ = 0;
};

}  // namespace abxbus::perf

#include "baseline/mini_bus.hpp"

#include <mimalloc.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

namespace abxbus::perf {

namespace {

constexpr std::size_t bulk = 64;
constexpr std::size_t fan_out_grain = 64;
constexpr int spins = 2'000;

// Spins a while, then sleeps until the word is no longer `old`.
template <class T>
void wait_while(const std::atomic<T>& word, T old) {
  for (int i = 0; i < spins; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    relax();
  }
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

Node* make_node(std::int64_t value, std::int64_t batch_id) {
  void* memory = mi_malloc_aligned(sizeof(Node), alignof(Node));
  if (memory == nullptr) throw std::bad_alloc();
  Node* node = ::new (memory) Node;
  node->value = value;
  node->batch_id = batch_id;
  node->created = ticks();
  return node;
}

void release(Node* node) noexcept {
  if (node->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  mi_free(node->results);
  node->~Node();
  mi_free(node);
}

MiniBus::MiniBus(tbb::task_arena& arena, std::size_t history_size) : arena_(arena), history_(history_size, nullptr) {}

MiniBus::~MiniBus() {
  wait_until_idle();
  while (drains_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  for (Node* node : history_) {
    if (node != nullptr) release(node);
  }
}

std::size_t MiniBus::on(Handler handler) {
  const std::lock_guard lock(mutex_);
  copy_handlers_if_shared();
  handlers_->push_back({next_id_, std::move(handler)});
  return next_id_++;
}

void MiniBus::off(std::size_t id) {
  const std::lock_guard lock(mutex_);
  copy_handlers_if_shared();
  std::erase_if(*handlers_, [&](const Registration& registration) { return registration.id == id; });
}

// Under the mutex. A drain that let go of its snapshot has done its reading before.
void MiniBus::copy_handlers_if_shared() {
  if (handlers_.use_count() > 1) handlers_ = std::make_shared<Handlers>(*handlers_);
  std::atomic_thread_fence(std::memory_order_acquire);
}

std::size_t MiniBus::handler_count() const {
  return snapshot()->size();
}

std::shared_ptr<const MiniBus::Handlers> MiniBus::snapshot() const {
  const std::lock_guard lock(mutex_);
  return handlers_;
}

NodePtr MiniBus::emit(std::int64_t value, std::int64_t batch_id) {
  NodePtr node(make_node(value, batch_id));
  queue_.enqueue(node.get());
  if (pending_.fetch_add(1, std::memory_order_acq_rel) == 0) {
    drains_.fetch_add(1, std::memory_order_relaxed);
    arena_.enqueue([this] { drain(); });
  }
  return node;
}

void MiniBus::now(const Node& node) {
  wait_while(node.done, 0U);
}

void MiniBus::wait_until_idle() {
  for (std::size_t left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire))
    wait_while(pending_, left);
}

void MiniBus::drain() {
  Node* nodes[bulk];
  std::size_t handled = 0;
  do {
    handled = queue_.try_dequeue_bulk(nodes, bulk);
    if (handled > 0) {
      const std::shared_ptr<const Handlers> handlers = snapshot();
      for (std::size_t i = 0; i < handled; ++i) run(*nodes[i], *handlers);
    }
  } while (pending_.fetch_sub(handled, std::memory_order_acq_rel) != handled || handled == 0);
  pending_.notify_all();
  drains_.fetch_sub(1, std::memory_order_release);
}

void MiniBus::run(Node& node, const Handlers& handlers) {
  node.started = ticks();
  if (handlers.size() > 1) {
    fan_out(node, handlers);
  } else {
    for (const Registration& registration : handlers) registration.handler(node);
  }
  node.completed = ticks();
  node.done.store(1, std::memory_order_release);
  node.done.notify_all();
  remember(&node);
}

void MiniBus::fan_out(Node& node, const Handlers& handlers) {
  auto* results =
      static_cast<HandlerResult*>(mi_malloc_aligned(handlers.size() * sizeof(HandlerResult), alignof(HandlerResult)));
  if (results == nullptr) throw std::bad_alloc();
  node.results = results;
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, handlers.size(), fan_out_grain), [&](const auto& range) {
    for (std::size_t i = range.begin(); i != range.end(); ++i) {
      const std::uint64_t started = ticks();
      handlers[i].handler(node);
      ::new (results + i) HandlerResult{.started = started, .completed = ticks(), .handler = &handlers[i]};
    }
  });
}

void MiniBus::remember(Node* node) {
  Node* old = std::exchange(history_[history_next_], node);
  history_next_ = (history_next_ + 1) % history_.size();
  if (old != nullptr) release(old);
}

}  // namespace abxbus::perf

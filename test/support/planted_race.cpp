// A data race of our own, between tasks of one arena. ThreadSanitizer has to report it in spite of tsan.supp.

#include <tbb/task_arena.h>

#include <atomic>
#include <thread>

namespace abxbus::test {

int unguarded = 0;

__attribute__((noinline)) void touch() {
  ++unguarded;
}

}  // namespace abxbus::test

int main() {
  constexpr int rounds = 2000;
  std::atomic<int> done{0};
  tbb::task_arena arena(2, 0);
  std::thread other([] {
    for (int i = 0; i < rounds; ++i) abxbus::test::touch();
  });
  for (int i = 0; i < rounds; ++i) {
    arena.enqueue([&done] {
      abxbus::test::touch();
      ++done;
    });
  }
  while (done.load() < rounds) std::this_thread::yield();
  other.join();
}

#include "harness/machine.hpp"

#include "harness/clock.hpp"
#include "harness/statistics.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

#ifndef ABXBUS_BUILD_TYPE
#define ABXBUS_BUILD_TYPE "unknown"
#endif
#ifndef ABXBUS_ALLOCATOR
#define ABXBUS_ALLOCATOR "unknown"
#endif

namespace abxbus::perf {

namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#else
  return "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

double loop_ns() {
  constexpr int rounds = 2'000;
  std::atomic<std::uint64_t> cell{0};
  std::vector<double> samples;
  for (int repeat = 0; repeat < 15; ++repeat) {
    const Stopwatch watch;
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
      for (int reading = 0; reading < 3; ++reading) sum += ticks();
      for (int add = 0; add < 5; ++add) cell.fetch_add(1);
    }
    samples.push_back(static_cast<double>(watch.elapsed_ns()) / rounds);
    cell.fetch_add(sum);
  }
  return median(std::move(samples));
}

// Two threads, each held on a core of its own, pass a number to and fro. In small chunks: where another process took
// a core away for a while, only the chunks it hit are spoilt.
double round_trip_ns(int first_core, int second_core) {
  constexpr std::uint64_t chunk = 100;
  constexpr std::uint64_t chunks = 60;
  struct alignas(128) Line {
    std::atomic<std::uint64_t> word{0};
  };
  Line there;
  Line back;
  std::vector<double> samples;
  std::thread answering([&] {
    stay_on(second_core);
    for (std::uint64_t i = 1; i <= chunk * chunks; ++i) {
      while (there.word.load(std::memory_order_acquire) != i) relax();
      back.word.store(i, std::memory_order_release);
    }
  });
  std::thread asking([&] {
    stay_on(first_core);
    std::uint64_t i = 0;
    for (std::uint64_t c = 0; c < chunks; ++c) {
      const Stopwatch watch;
      for (std::uint64_t trip = 0; trip < chunk; ++trip) {
        there.word.store(++i, std::memory_order_release);
        while (back.word.load(std::memory_order_acquire) != i) relax();
      }
      samples.push_back(static_cast<double>(watch.elapsed_ns()) / chunk);
    }
  });
  asking.join();
  answering.join();
  return median(std::move(samples));
}

}  // namespace

Machine describe_machine(int workers) {
  return {.cpu = cpu_name(),
          .cores = std::max(1, static_cast<int>(usable_cores().size())),
          .compiler = compiler_name(),
          .build_type = ABXBUS_BUILD_TYPE,
          .allocator = ABXBUS_ALLOCATOR,
          .workers = workers};
}

bool is_optimised_build() noexcept {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

Reference measure_reference() {
  Reference reference{.loop_ns = loop_ns()};
  if (const std::vector<int> cores = usable_cores(); cores.size() >= 2)
    reference.round_trip_ns = round_trip_ns(cores[0], cores[1]);
  return reference;
}

}  // namespace abxbus::perf

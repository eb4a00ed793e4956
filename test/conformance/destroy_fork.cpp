// A forked child: buses made before the fork are dead in it, and nothing hangs.

#include "support/catch.hpp"
#include "support/scheduling.hpp"
#include "support/testing.hpp"

#include <abxbus/abxbus.hpp>

#include <atomic>
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace {

using namespace abxbus;
using namespace testing;

struct Work {};

/// Runs a check in a forked child and gives its verdict: what the check returned, -1 when it hung, -2 when it crashed.
template <class F>
int verdict_of_child(F check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check());
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
  if (!ended) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

}  // namespace

TEST_CASE("emit in a forked child gives an error", "[S-DST-5][fork]") {
  EventBus bus("ForkEmit");
  bus.on<Work>([](const Work&) {});
  for (int i = 0; i < 10; ++i) bus.emit(Work{}).now();

  const int verdict = verdict_of_child([&] {
    try {
      bus.emit(Work{});
      return 1;
    } catch (const EventBusDestroyedError&) {
      return 0;
    } catch (...) {
      return 2;
    }
  });
  REQUIRE(verdict == 0);
  REQUIRE(completed(bus.emit(Work{}).now()));
}

TEST_CASE("a forked child may end the bus", "[S-DST-5][fork]") {
  EventBus bus("ForkEnd");
  bus.on<Work>([](const Work&) {});
  bus.emit(Work{}).now();

  const int verdict = verdict_of_child([&] {
    bus.destroy();
    { const EventBus ended(std::move(bus)); }
    return 0;
  });
  REQUIRE(verdict == 0);
  REQUIRE(completed(bus.emit(Work{}).now()));
}

TEST_CASE("a fork while handlers run, and from inside one", "[S-DST-5][fork]") {
  Gate gate;
  EventBus bus("ForkRunning");
  EventBus inside("ForkInside");
  bus.on<Work>([&](const Work&) { gate.wait(); });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));
  const auto refused = [&] {
    try {
      bus.emit(Work{});
      return 1;
    } catch (const EventBusDestroyedError&) {
      return 0;
    }
  };
  inside.on<Work>([&](const Work&) { return verdict_of_child(refused); });

  REQUIRE(verdict_of_child(refused) == 0);
  REQUIRE(inside.emit(Work{}).now().event_results()[0].result_as<int>() == std::optional<int>(0));
  gate.open();
  event.wait();
}

// The child starts threads here, which ThreadSanitizer does not support after a fork of several threads: it ends the
// process, or, told not to, trips over the parent's threads.
#ifndef __SANITIZE_THREAD__
TEST_CASE("a child does not go on with what the parent's handlers do", "[S-DST-5][fork]") {
  Gate gate;
  // An executor of its own: no thread that an earlier test has left is there, so work of the parent's would be run.
  EventBus bus("ForkDeadline", {.executor = Executor(ExecutorOptions{.workers = 1})});
  std::atomic<int> later_handlers{0};
  bus.on<Work>([&](const Work&) { gate.wait(); }, {.handler_name = "first", .handler_timeout = Seconds(0.5)});
  bus.on<Work>([&](const Work&) { ++later_handlers; });
  OpenAtExit guard(gate);
  auto event = bus.emit(Work{});
  REQUIRE(gate.wait_for_arrivals(1));

  // A bus of the child's own starts the child's watchdog, which may not see the deadline that passes at 0.5 s: the
  // handler's thread and its bus are the parent's.
  const int verdict = verdict_of_child([&] {
    Gate never;
    EventBus fresh("ForkFresh");
    fresh.on<Work>([&](const Work&) { never.wait(); }, {.handler_name = "slow", .handler_timeout = Seconds(0.8)});
    const OpenAtExit open_never(never);
    const auto result = fresh.emit(Work{}).now().event_results()[0];
    if (result.status() != EventResultStatus::error) return 1;
    return later_handlers.load() == 0 ? 0 : 2;
  });
  gate.open();
  event.wait();
  REQUIRE(verdict == 0);
  REQUIRE(later_handlers.load() == 1);
}
#endif

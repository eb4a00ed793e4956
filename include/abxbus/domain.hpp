#pragma once

#include <abxbus/fwd.hpp>
#include <abxbus/modes.hpp>

#include <memory>
#include <utility>

namespace abxbus {

namespace detail {
struct DomainState;
struct ExecutorState;
}  // namespace detail

/// The scope of bus names, of the registry and of the `global-serial` lock (S-BUS-17). Buses of different domains
/// never wait for each other's global lock and never see each other. A handle: copies name the same domain.
/// Threads: any.
class Domain {
 public:
  /// A new, empty domain.
  Domain();
  /// The domain of every bus that names none.
  static Domain default_domain();
  friend bool operator==(const Domain&, const Domain&) = default;

 private:
  friend struct detail::BusCore;
  friend struct detail::DomainState;
  explicit Domain(std::shared_ptr<detail::DomainState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::DomainState> state_;
};

/// How many workers an executor keeps and how far away a deadline must be for inline execution.
struct ExecutorOptions {
  int workers = 0;  ///< 0: one a core; the default executor also reads ABXBUS_WORKERS
  Seconds inline_deadline_floor{10};
};

/// The threads that run handlers: one TBB task arena, plus spare threads while handlers block (T-CAN-21). A handle:
/// copies name the same executor. An executor made by the user lives until its last bus and handle are gone.
/// Threads: any. Constructing starts nothing (S-BUS-15). Errors: ValidationError for a negative or absurd option.
class Executor {
 public:
  explicit Executor(ExecutorOptions options = {});
  /// The process-wide executor; `ABXBUS_WORKERS` in the environment sets its worker count.
  static Executor default_executor();
  /// The configured number of workers.
  int workers() const noexcept;
  friend bool operator==(const Executor&, const Executor&) = default;

 private:
  friend struct detail::BusCore;
  friend struct detail::ExecutorState;
  explicit Executor(std::shared_ptr<detail::ExecutorState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::ExecutorState> state_;
};

}  // namespace abxbus

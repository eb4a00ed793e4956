#pragma once

#include <abxbus/fwd.hpp>
#include <abxbus/modes.hpp>
#include <abxbus/timestamp.hpp>

#include <optional>
#include <string>
#include <utility>

namespace abxbus {

/// A registration (S-REG-1): a handle, copyable, usable from any thread; it does not keep the callable alive. The
/// getters stay valid after `off` and after the end of the bus.
class EventHandler {
 public:
  EventHandler() noexcept = default;
  EventHandler(const EventHandler& other) noexcept;
  EventHandler(EventHandler&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  EventHandler& operator=(EventHandler other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~EventHandler();

  /// UUIDv5 of D-ID-5, computed on first use (about 2 us), or the id given in the options.
  std::string id() const;
  std::string handler_name() const;
  std::optional<std::string> handler_file_path() const;
  std::optional<Seconds> handler_timeout() const noexcept;
  std::optional<Seconds> handler_slow_timeout() const noexcept;
  Timestamp handler_registered_at() const noexcept;
  std::string event_pattern() const;
  std::string eventbus_name() const;
  std::string eventbus_id() const;
  /// `name#abcd` (D-LBL-2).
  std::string label() const;

  /// Count from the next handler run on (T-TMO-3). ValidationError when negative.
  void set_handler_timeout(std::optional<Seconds> value) const;
  void set_handler_slow_timeout(std::optional<Seconds> value) const;

  friend bool operator==(const EventHandler& a, const EventHandler& b) noexcept { return a.entry_ == b.entry_; }
  explicit operator bool() const noexcept { return entry_ != nullptr; }

  /// Internal: takes over one reference.
  explicit EventHandler(detail::Entry* adopted) noexcept : entry_(adopted) {}
  /// Internal.
  detail::Entry* entry() const noexcept { return entry_; }

 private:
  detail::Entry* entry_ = nullptr;
};

}  // namespace abxbus

#pragma once

#include <boost/json/fwd.hpp>

#include <utility>

/// The JSON types by name only; include `abxbus/json.hpp` to touch values.

namespace abxbus::json {

using value = boost::json::value;
using object = boost::json::object;
using array = boost::json::array;

/// A shared, immutable JSON value: one pointer to a reference-counted holder. Empty by default, which reads as an empty
/// object. Cheap to copy; copies may be used and dropped by any threads at once.
class ref {
 public:
  ref() noexcept = default;
  ref(const value& source);
  ref(value&& source);
  ref(const object& source);
  ref(object&& source);

  ref(const ref& other) noexcept;
  ref(ref&& other) noexcept : holder_(std::exchange(other.holder_, nullptr)) {}
  ref& operator=(ref other) noexcept {
    std::swap(holder_, other.holder_);
    return *this;
  }
  ~ref() {
    if (holder_ != nullptr) release(holder_);
  }

  /// Whether a value was given.
  explicit operator bool() const noexcept { return holder_ != nullptr; }
  /// The value; an empty object when none was given. Valid as long as this or a copy of it lives.
  const value& get() const noexcept;

 private:
  struct Holder;
  static void release(Holder* holder) noexcept;

  Holder* holder_ = nullptr;
};

}  // namespace abxbus::json

#include <abxbus/json_fwd.hpp>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <atomic>
#include <cstdint>

namespace abxbus::json {

struct ref::Holder {
  explicit Holder(value content) : value_(std::move(content)) {}

  value value_;
  /// References. Increments are relaxed: who copies holds one already. A decrement releases what its thread did with
  /// the value; the last one acquires all of them before it deletes.
  std::atomic<std::uint32_t> refs_{1};
};

ref::ref(const value& source) : holder_(new Holder(source)) {}
ref::ref(value&& source) : holder_(new Holder(std::move(source))) {}
ref::ref(const object& source) : holder_(new Holder(source)) {}
ref::ref(object&& source) : holder_(new Holder(std::move(source))) {}

ref::ref(const ref& other) noexcept : holder_(other.holder_) {
  if (holder_ != nullptr) holder_->refs_.fetch_add(1, std::memory_order_relaxed);
}

void ref::release(Holder* holder) noexcept {
  if (holder->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete holder;
}

const value& ref::get() const noexcept {
  // Never destroyed: an empty ref may be read while the process ends.
  static const value& empty = *new value(boost::json::object_kind);
  return holder_ != nullptr ? holder_->value_ : empty;
}

}  // namespace abxbus::json

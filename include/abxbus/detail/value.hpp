#pragma once

#include <abxbus/detail/codec.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace abxbus::detail {

/// What a stored value is, beside its type.
enum class ValueKind : std::uint8_t { value, json, event, error };

/// How to handle the bytes of one value type. One static object a type.
struct ValueOps {
  ValueKind kind;
  bool trivial;  ///< relocate = copy of the bytes, destroy = nothing
  const std::type_info* type;
  void (*relocate)(void* from, void* to) noexcept;
  void (*destroy)(void* storage) noexcept;
  const void* (*get)(const void* storage) noexcept;
  /// Null when the type has no JSON form.
  codec::encode_fn encode;
};

/// Memory for values that do not fit inline; counted for the bus whose handler is running on this thread.
void* allocate_value(std::size_t bytes);
void free_value(void* block) noexcept;

/// A type-erased, movable value: nothing, a C++ value, a JSON value, an event, or an exception. 24 bytes are stored
/// inline, larger values out of line. Not synchronised.
class Value {
 public:
  static constexpr std::size_t inline_size = 24;

  Value() noexcept : ops_(nullptr) {}
  Value(Value&& other) noexcept : ops_(other.ops_) { take(other); }
  Value& operator=(Value&& other) noexcept {
    if (this != &other) {
      reset();
      ops_ = other.ops_;
      take(other);
    }
    return *this;
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { reset(); }

  /// Stores `value` under the given kind. Throws what the value's constructor or the allocator throws.
  template <class T>
  static Value make(T&& value, ValueKind kind = ValueKind::value);

  void reset() noexcept {
    if (ops_ != nullptr && !ops_->trivial) ops_->destroy(storage_);
    ops_ = nullptr;
  }
  bool empty() const noexcept { return ops_ == nullptr; }
  const ValueOps* ops() const noexcept { return ops_; }
  bool is(ValueKind kind) const noexcept { return ops_ != nullptr && ops_->kind == kind; }
  const void* object() const noexcept { return ops_->get(storage_); }
  /// The stored object when its type is exactly `T`.
  template <class T>
  const T* get_if() const noexcept {
    return ops_ != nullptr && *ops_->type == typeid(T) ? static_cast<const T*>(object()) : nullptr;
  }

 private:
  void take(Value& other) noexcept {
    if (ops_ == nullptr) return;
    if (ops_->trivial) {
      std::memcpy(storage_, other.storage_, inline_size);
    } else {
      ops_->relocate(other.storage_, storage_);
    }
    other.ops_ = nullptr;
  }

  const ValueOps* ops_;
  alignas(8) unsigned char storage_[inline_size];
};
static_assert(sizeof(Value) == 32);

template <class T>
inline constexpr bool stored_inline = sizeof(T) <= Value::inline_size &&
                                      alignof(T) <= 8 && std::is_nothrow_move_constructible_v<T>;

template <class T>
struct InlineOps {
  static void relocate(void* from, void* to) noexcept {
    ::new (to) T(std::move(*static_cast<T*>(from)));
    static_cast<T*>(from)->~T();
  }
  static void destroy(void* storage) noexcept { static_cast<T*>(storage)->~T(); }
  static const void* get(const void* storage) noexcept { return storage; }
};

template <class T>
struct HeapOps {
  static T*& pointer(void* storage) noexcept { return *static_cast<T**>(storage); }
  static void relocate(void* from, void* to) noexcept { ::new (to) T*(pointer(from)); }
  static void destroy(void* storage) noexcept {
    pointer(storage)->~T();
    free_value(pointer(storage));
  }
  static const void* get(const void* storage) noexcept { return *static_cast<T* const*>(storage); }
};

/// Defined in event_type.hpp: the JSON form of `T`, null when it has none.
template <class T>
struct ValueEncoder;

template <class T, ValueKind Kind>
const ValueOps& value_ops() noexcept {
  using Ops = std::conditional_t<stored_inline<T>, InlineOps<T>, HeapOps<T>>;
  static constexpr ValueOps ops{Kind,
                                stored_inline<T> && std::is_trivially_copyable_v<T>,
                                &typeid(T),
                                &Ops::relocate,
                                &Ops::destroy,
                                &Ops::get,
                                ValueEncoder<T>::function};
  return ops;
}

template <class T>
Value Value::make(T&& value, ValueKind kind) {
  using U = std::remove_cvref_t<T>;
  Value result;
  if constexpr (stored_inline<U>) {
    ::new (static_cast<void*>(result.storage_)) U(std::forward<T>(value));
  } else {
    static_assert(alignof(U) <= alignof(std::max_align_t), "handler results may not be over-aligned");
    void* block = allocate_value(sizeof(U));
    try {
      ::new (block) U(std::forward<T>(value));
    } catch (...) {
      free_value(block);
      throw;
    }
    ::new (static_cast<void*>(result.storage_)) U*(static_cast<U*>(block));
  }
  switch (kind) {
    case ValueKind::value:
      result.ops_ = &value_ops<U, ValueKind::value>();
      break;
    case ValueKind::json:
      result.ops_ = &value_ops<U, ValueKind::json>();
      break;
    case ValueKind::event:
      result.ops_ = &value_ops<U, ValueKind::event>();
      break;
    case ValueKind::error:
      result.ops_ = &value_ops<U, ValueKind::error>();
      break;
  }
  return result;
}

}  // namespace abxbus::detail

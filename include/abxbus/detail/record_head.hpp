#pragma once

#include <abxbus/detail/codec.hpp>
#include <abxbus/detail/value.hpp>
#include <abxbus/fwd.hpp>
#include <abxbus/modes.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace abxbus::detail {

/// Defaults that an event type declares as static members (D-TEV-1). One static object a type.
struct TypeDefaults {
  std::string_view event_version = "0.0.1";
  std::optional<Seconds> event_timeout = {};
  std::optional<Seconds> event_slow_timeout = {};
  std::optional<EventConcurrency> event_concurrency = {};
  std::optional<Seconds> event_handler_timeout = {};
  std::optional<Seconds> event_handler_slow_timeout = {};
  std::optional<EventHandlerConcurrency> event_handler_concurrency = {};
  std::optional<EventHandlerCompletion> event_handler_completion = {};
  bool event_blocks_parent_completion = false;
};

/// An event type's name, interned for the life of the process, so that matching compares pointers.
struct TypeKey;
const TypeKey* intern_type(std::string_view event_type);

/// What the library knows of a payload type. One static object a type.
struct EventTypeInfo {
  std::string_view event_type;
  const TypeDefaults* defaults;
  std::size_t size;
  const std::type_info* type;
  void (*destroy)(void* payload) noexcept;  ///< null: nothing to do
  /// Null when the type has no JSON form.
  codec::encode_fn encode;
  codec::decode_fn decode;
  /// The interned `event_type`, filled in by the first event of the type. Relaxed: interning is idempotent and the
  /// key's contents are published by `intern_type`'s own lock (acquire in the reader is not needed for the pointer
  /// compare; readers of the contents go through the record, which was handed over with release/acquire).
  mutable std::atomic<const TypeKey*> key{nullptr};
};

/// The part of an event's record that handles touch inline. The payload follows the record.
struct RecordHead {
  /// Handles, history, and runs in progress. Decrements are release, the last one acquires (its own partner).
  std::atomic<std::uint32_t> refs;
  /// RecordFlag bits; COMPLETED is published with release after every result and read with acquire.
  std::atomic<std::uint32_t> flags;
  const EventTypeInfo* type;
};

/// Size of the record in front of its payload; checked against the real layout in the library.
inline constexpr std::size_t record_bytes = 256;

inline void* payload_of(RecordHead* record) noexcept {
  return reinterpret_cast<std::byte*>(record) + record_bytes;
}
inline const void* payload_of(const RecordHead* record) noexcept {
  return reinterpret_cast<const std::byte*>(record) + record_bytes;
}

/// A record with one reference and unconstructed payload. Throws std::bad_alloc.
RecordHead* new_record(const EventTypeInfo& type);
/// Frees a record whose payload was never constructed.
void discard_record(RecordHead* record) noexcept;
/// The last reference is gone.
void destroy_record(RecordHead* record) noexcept;

inline void retain(RecordHead* record) noexcept {
  record->refs.fetch_add(1, std::memory_order_relaxed);
}
inline void release(RecordHead* record) noexcept {
  if (record->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_record(record);
}

/// Counted pointer to a record.
class RecordPtr {
 public:
  RecordPtr() noexcept = default;
  /// Takes over one reference.
  explicit RecordPtr(RecordHead* adopted) noexcept : record_(adopted) {}
  static RecordPtr share(RecordHead* record) noexcept {
    retain(record);
    return RecordPtr(record);
  }
  RecordPtr(const RecordPtr& other) noexcept : record_(other.record_) {
    if (record_ != nullptr) retain(record_);
  }
  RecordPtr(RecordPtr&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  RecordPtr& operator=(RecordPtr other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~RecordPtr() {
    if (record_ != nullptr) release(record_);
  }
  RecordHead* get() const noexcept { return record_; }
  /// Gives the reference away.
  RecordHead* leave() noexcept { return std::exchange(record_, nullptr); }
  explicit operator bool() const noexcept { return record_ != nullptr; }

 private:
  RecordHead* record_ = nullptr;
};

}  // namespace abxbus::detail

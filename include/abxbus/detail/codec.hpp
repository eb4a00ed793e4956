#pragma once

#include <abxbus/detail/codec_read.hpp>
#include <abxbus/detail/codec_write.hpp>

#include <new>

/// C++ values to JSON and back, without the JSON library's headers: what the typed parts of the library use.
/// Which type becomes what: spec chapter "C++ types, JSON, schema" (D-TYP-1..4), implemented by type_kind.hpp.

namespace abxbus::detail::codec {

/// Writes the object behind the pointer as one JSON value. Throws ValidationError (D-JSON-5).
using encode_fn = void (*)(const void* object, Writer& writer);
/// Makes the object in uninitialised storage. Throws ValidationError (D-TYP-1), then there is no object.
using decode_fn = void (*)(Reader from, void* storage);

template <class T>
void encode_as(const void* object, Writer& writer) {
  write(writer, *static_cast<const T*>(object));
}

template <class T>
void decode_as(Reader from, void* storage) {
  struct Guard {
    T* object;
    ~Guard() {
      if (object != nullptr) object->~T();
    }
  } guard{::new (storage) T()};
  Failure failure;
  if (!read_into(from, *guard.object, failure)) failure.raise();
  guard.object = nullptr;
}

/// Throws ValidationError with path and expected type (D-TYP-1).
template <class T>
T decode(Reader from) {
  T value = T();
  Failure failure;
  if (!read_into(from, value, failure)) failure.raise();
  return value;
}

/// Whether the value decodes as `T`; throws nothing but what constructors throw.
template <class T>
bool decodes(Reader from) {
  T value = T();
  Failure failure;
  return read_into(from, value, failure);
}

}  // namespace abxbus::detail::codec

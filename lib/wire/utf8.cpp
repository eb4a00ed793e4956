#include "wire/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace abxbus::detail {

namespace {

/// Length of the well-formed multi-byte sequence at the start, 0 when there is none.
std::size_t sequence_length(const unsigned char* bytes, std::size_t left) noexcept {
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < left && bytes[i] >= low && bytes[i] <= high;
  };
  const unsigned first = bytes[0];
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;   // overlong
    const unsigned high = first == 0xED ? 0x9F : 0xBF;  // surrogates
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;   // overlong
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;  // above U+10FFFF
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t left = text.size();
  while (left > 0) {
    if (left >= 8) {
      std::uint64_t eight;
      std::memcpy(&eight, bytes, 8);
      if ((eight & 0x8080808080808080U) == 0) {
        bytes += 8;
        left -= 8;
        continue;
      }
    }
    const std::size_t length = *bytes < 0x80 ? 1 : sequence_length(bytes, left);
    if (length == 0) return false;
    bytes += length;
    left -= length;
  }
  return true;
}

}  // namespace abxbus::detail

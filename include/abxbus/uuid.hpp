#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace abxbus {

/// A UUID: 16 bytes in the order of the text. The default value is the nil UUID.
///
/// Threads: a plain value; every static function may be called from any thread.
class Uuid {
 public:
  using Bytes = std::array<std::uint8_t, 16>;
  /// Characters of the text form.
  static constexpr std::size_t text_size = 36;

  constexpr Uuid() noexcept = default;
  constexpr explicit Uuid(const Bytes& bytes) noexcept : bytes_(bytes) {}

  /// A new UUIDv7 (RFC 9562, D-ID-1). Unique over all threads of the process; those made one after another on one
  /// thread compare increasing (D-ID-2). Costs one clock reading.
  static Uuid v7() noexcept;

  /// Reads the hyphenated form of 36 characters, of any version and either case (D-ID-3). ValidationError for anything
  /// else.
  static Uuid parse(std::string_view text);

  /// The lower-case hyphenated form. One allocation.
  std::string str() const;

  constexpr const Bytes& bytes() const noexcept { return bytes_; }
  constexpr bool is_nil() const noexcept { return bytes_ == Bytes{}; }

  /// Order of the texts.
  friend constexpr bool operator==(const Uuid&, const Uuid&) noexcept = default;
  friend constexpr std::strong_ordering operator<=>(const Uuid&, const Uuid&) noexcept = default;

  /// Compares the lower-case text form, character by character.
  friend bool operator==(const Uuid& left, std::string_view right) noexcept { return left.compare_text(right) == 0; }
  friend std::strong_ordering operator<=>(const Uuid& left, std::string_view right) noexcept {
    return left.compare_text(right) <=> 0;
  }

 private:
  int compare_text(std::string_view text) const noexcept;

  Bytes bytes_{};
};

}  // namespace abxbus

template <>
struct std::hash<abxbus::Uuid> {
  std::size_t operator()(const abxbus::Uuid& id) const noexcept {
    // The last eight bytes of a version 7 are mixed already; the first eight cover ids that somebody counted up.
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      high = high << 8 | id.bytes()[i];
      low = low << 8 | id.bytes()[i + 8];
    }
    std::uint64_t mixed = (high ^ (low * 0x9E3779B97F4A7C15U)) * 0xD6E8FEB86659FD93U;
    mixed ^= mixed >> 32;
    return static_cast<std::size_t>(mixed);
  }
};

#include "event/clock.hpp"
#include "event/id_source.hpp"
#include "event/text_forms.hpp"

#include <abxbus/error.hpp>
#include <abxbus/uuid.hpp>

#include <atomic>
#include <random>

namespace abxbus {
namespace detail {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

/// Whether a hyphen stands before this byte in the text form.
constexpr bool hyphen_before(std::size_t byte) noexcept {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr int salt_bits = 54;
constexpr std::uint64_t salt_mask = (std::uint64_t{1} << salt_bits) - 1;

/// Spreads the low 54 bits over themselves. Each step can be undone within 54 bits, so different inputs stay different.
constexpr std::uint64_t mix_salt(std::uint64_t salt) noexcept {
  std::uint64_t x = salt & salt_mask;
  x ^= x >> 27;
  x = (x * 0x3C79AC492BA7B653U) & salt_mask;
  x ^= x >> 29;
  x = (x * 0x1C69B3F74AC4AE35U) & salt_mask;
  x ^= x >> 27;
  return x;
}

std::uint64_t random_bits() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

/// Where the salts of this process start. Without a source of randomness the time and an address serve.
std::uint64_t process_salt() noexcept {
  try {
    return random_bits();
  } catch (...) {
    return static_cast<std::uint64_t>(now_ns()) ^ reinterpret_cast<std::uintptr_t>(&thread_salt);
  }
}

}  // namespace

std::uint64_t first_salt() noexcept {
  static const std::uint64_t base = process_salt();
  // Relaxed: only that each thread gets a number of its own matters.
  static std::atomic<std::uint64_t> threads{0};
  return base + (threads.fetch_add(1, std::memory_order_relaxed) << 34) * salt_step;
}

Uuid make_v7(std::int64_t unix_ns, std::uint64_t salt) noexcept {
  const auto ns = static_cast<std::uint64_t>(unix_ns);
  const std::uint64_t milliseconds = ns / 1'000'000;
  const std::uint64_t rest = ns % 1'000'000;  // below 2^20
  const std::uint64_t high = milliseconds << 16 | std::uint64_t{7} << 12 | rest >> 8;
  const std::uint64_t low = std::uint64_t{2} << 62 | (rest & 0xFF) << salt_bits | mix_salt(salt);
  Uuid::Bytes bytes;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
    bytes[i + 8] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  }
  return Uuid(bytes);
}

void write_text(const Uuid& id, char* out) noexcept {
  for (std::size_t i = 0; i < id.bytes().size(); ++i) {
    if (hyphen_before(i)) *out++ = '-';
    *out++ = hex_digits[id.bytes()[i] >> 4];
    *out++ = hex_digits[id.bytes()[i] & 0xF];
  }
}

std::optional<Uuid> parse_uuid(std::string_view text) noexcept {
  if (text.size() != Uuid::text_size) return std::nullopt;
  Uuid::Bytes bytes;
  const char* in = text.data();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (hyphen_before(i) && *in++ != '-') return std::nullopt;
    const int high = hex_value(*in++);
    const int low = hex_value(*in++);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return Uuid(bytes);
}

}  // namespace detail

Uuid Uuid::v7() noexcept {
  return detail::make_v7(detail::now_ns(), detail::next_salt());
}

Uuid Uuid::parse(std::string_view text) {
  if (const auto id = detail::parse_uuid(text)) return *id;
  throw ValidationError("invalid UUID, expected 36 hyphenated characters, got: " + std::string(text));
}

std::string Uuid::str() const {
  std::string text(text_size, '\0');
  detail::write_text(*this, text.data());
  return text;
}

int Uuid::compare_text(std::string_view text) const noexcept {
  char own[text_size];
  detail::write_text(*this, own);
  return std::string_view(own, text_size).compare(text);
}

}  // namespace abxbus

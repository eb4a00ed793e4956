#include "event/names.hpp"

#include "event/text_forms.hpp"

#include <abxbus/error.hpp>

#include <charconv>

namespace abxbus::detail {
namespace {

bool ascii_letter(unsigned char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool ascii_digit(unsigned char c) noexcept {
  return c >= '0' && c <= '9';
}

/// Length of the UTF-8 sequence that the text begins with, 0 when it is not valid (RFC 3629: no overlong form, no
/// surrogate, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned char lowest = 0x80;
  unsigned char highest = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) lowest = 0xA0;
    if (first == 0xED) highest = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) lowest = 0x90;
    if (first == 0xF4) highest = 0x8F;
  }
  if (length == 0 || text.size() < length || byte(1) < lowest || byte(1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return length;
}

/// Code points of a text of letters, digits and `_` that does not begin with a digit; 0 for any other text.
std::size_t word_length(std::string_view text, bool leading_underscore) noexcept {
  std::size_t count = 0;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const bool allowed = first >= 0x80 || ascii_letter(first) || (count > 0 && ascii_digit(first)) ||
                         (first == '_' && (count > 0 || leading_underscore));
    const std::size_t length = sequence_length(text);
    if (!allowed || length == 0) return 0;
    text.remove_prefix(length);
    ++count;
  }
  return count;
}

std::string with_suffix(std::string_view name, std::string_view id) {
  std::string label;
  label.reserve(name.size() + 5);
  label.append(name).append("#").append(last4(id));
  return label;
}

}  // namespace

std::optional<std::size_t> count_code_points(std::string_view text) noexcept {
  std::size_t count = 0;
  for (; !text.empty(); ++count) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return std::nullopt;
    text.remove_prefix(length);
  }
  return count;
}

bool is_identifier(std::string_view text) noexcept {
  return word_length(text, false) > 0;
}

bool is_event_type(std::string_view text) noexcept {
  const std::size_t length = word_length(text, false);
  return length > 0 && length <= 64;
}

void check_event_type(std::string_view text) {
  if (is_event_type(text)) return;
  throw ValidationError("event_type must be an identifier of at most 64 characters, got: " + std::string(text),
                        "event_type");
}

void check_bus_name(std::string_view name) {
  if (is_identifier(name)) return;
  throw ValidationError("EventBus name must be a unique identifier string, got: " + std::string(name), "name");
}

bool is_bus_label(std::string_view text) noexcept {
  const std::size_t hash = text.rfind('#');
  if (hash == std::string_view::npos || text.size() - hash != 5) return false;
  for (const char c : text.substr(hash + 1))
    if (!ascii_letter(static_cast<unsigned char>(c)) && !ascii_digit(static_cast<unsigned char>(c))) return false;
  return word_length(text.substr(0, hash), true) > 0;
}

std::string_view last4(std::string_view text) noexcept {
  return text.size() > 4 ? text.substr(text.size() - 4) : text;
}

std::string bus_label(std::string_view name, std::string_view id) {
  return with_suffix(name, id);
}

std::string handler_label(std::string_view handler_name, std::string_view handler_id) {
  return with_suffix(handler_name, handler_id);
}

std::string handler_display(std::string_view handler_name, std::string_view handler_id, std::string_view file_path) {
  std::string text = handler_name == "anonymous" ? with_suffix("function", handler_id) : std::string(handler_name);
  text += "()";
  if (!file_path.empty()) text.append(" @ ").append(file_path);
  return text;
}

std::string event_label(std::string_view event_type, const Uuid& event_id) {
  char id[Uuid::text_size];
  write_text(event_id, id);
  return with_suffix(event_type, {id, Uuid::text_size});
}

std::string seconds_text(Seconds seconds) {
  // The longest: the sign, 0., and 340 digits of the smallest number.
  char buffer[512];
  const double value = seconds.count() == 0 ? 0.0 : seconds.count();  // no "-0"
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  return {buffer, end};
}

std::string fixed_text(double value, int decimals) {
  char buffer[512];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, decimals);
  if (error != std::errc{}) return seconds_text(Seconds(value));
  return {buffer, end};
}

}  // namespace abxbus::detail

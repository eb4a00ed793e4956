#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace abxbus::perf {

/// A JSON value that is only written: keys keep their order, numbers that are none become null.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  template <std::integral I>
  Json(I number) : value_(static_cast<std::int64_t>(number)) {}
  Json(double number) : value_(number) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(Array array) : value_(std::move(array)) {}
  Json(Object object) : value_(std::move(object)) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}

  /// Indented by two blanks a level; arrays of numbers stay on one line.
  std::string dump() const;

 private:
  void write(std::string& out, std::size_t indent) const;
  bool is_container() const;

  std::variant<std::monostate, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace abxbus::perf

#include "wire/number.hpp"

#include <abxbus/json.hpp>

namespace abxbus::json {

namespace {

bool equal_arrays(const array& left, const array& right) noexcept {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!deep_equal(left[i], right[i])) return false;
  }
  return true;
}

/// Keys are unique, so equal sizes and one direction suffice.
bool equal_objects(const object& left, const object& right) noexcept {
  if (left.size() != right.size()) return false;
  for (const auto& member : left) {
    const value* other = right.if_contains(member.key());
    if (other == nullptr || !deep_equal(member.value(), *other)) return false;
  }
  return true;
}

}  // namespace

bool deep_equal(const value& left, const value& right) noexcept {
  if (left.is_number() && right.is_number()) return detail::compare_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case boost::json::kind::bool_:
      return left.get_bool() == right.get_bool();
    case boost::json::kind::string:
      return left.get_string() == right.get_string();
    case boost::json::kind::array:
      return equal_arrays(left.get_array(), right.get_array());
    case boost::json::kind::object:
      return equal_objects(left.get_object(), right.get_object());
    default:
      return true;
  }
}

}  // namespace abxbus::json

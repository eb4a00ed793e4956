#include <abxbus/detail/codec_io.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace abxbus::detail::codec {

JsonKind Reader::kind() const noexcept {
  switch (value_->kind()) {
    case boost::json::kind::null:
      return JsonKind::null;
    case boost::json::kind::bool_:
      return JsonKind::boolean;
    case boost::json::kind::int64:
      return JsonKind::int64;
    case boost::json::kind::uint64:
      return JsonKind::uint64;
    case boost::json::kind::double_:
      return JsonKind::number;
    case boost::json::kind::string:
      return JsonKind::string;
    case boost::json::kind::array:
      return JsonKind::array;
    case boost::json::kind::object:
      break;
  }
  return JsonKind::object;
}

bool Reader::is_null() const noexcept {
  return value_->is_null();
}
bool Reader::as_bool() const noexcept {
  return value_->get_bool();
}
std::int64_t Reader::as_int64() const noexcept {
  return value_->get_int64();
}
std::uint64_t Reader::as_uint64() const noexcept {
  return value_->get_uint64();
}
double Reader::as_double() const noexcept {
  return value_->get_double();
}

std::string_view Reader::as_string() const noexcept {
  const boost::json::string& text = value_->get_string();
  return {text.data(), text.size()};
}

std::size_t Reader::size() const noexcept {
  if (const auto* elements = value_->if_array()) return elements->size();
  if (const auto* members = value_->if_object()) return members->size();
  return 0;
}

Reader Reader::at(std::size_t index) const noexcept {
  if (const auto* elements = value_->if_array()) return (*elements)[index];
  return value_->get_object().begin()[static_cast<std::ptrdiff_t>(index)].value();
}

std::string_view Reader::key_at(std::size_t index) const noexcept {
  const auto key = value_->get_object().begin()[static_cast<std::ptrdiff_t>(index)].key();
  return {key.data(), key.size()};
}

Reader Reader::find(std::string_view key) const noexcept {
  const auto* found = value_->get_object().if_contains({key.data(), key.size()});
  return found != nullptr ? Reader(*found) : Reader();
}

}  // namespace abxbus::detail::codec

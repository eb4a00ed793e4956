#include <abxbus/error.hpp>
#include <abxbus/json.hpp>

#include <boost/json/basic_parser_impl.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>

namespace abxbus::json {

namespace {

using boost::json::error_code;

/// Builds a value from the parser's calls. Boost's own parser computes doubles to within a unit in the last place only;
/// this one reads their text again, exactly.
class Builder {
 public:
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  using text = boost::json::string_view;

  bool on_document_begin(error_code&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t count, error_code&) {
    stack_.push_object(count);
    return true;
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t count, error_code&) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(text part, std::size_t, error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_key(text part, std::size_t, error_code&) {
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(text part, std::size_t, error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(text part, std::size_t, error_code&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(text part, error_code&) {
    digits_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t number, text, error_code&) {
    digits_.clear();
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, text, error_code&) {
    digits_.clear();
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double approximate, text part, error_code& error) {
    digits_.append(part.data(), part.size());
    double number = 0;
    const auto result = std::from_chars(digits_.data(), digits_.data() + digits_.size(), number);
    digits_.clear();
    if (result.ec == std::errc::result_out_of_range) {
      number = std::copysign(0.0, approximate);
      if (std::fabs(approximate) > 1) {
        error = boost::json::error::exponent_overflow;
        return false;
      }
    }
    stack_.push_double(number);
    return true;
  }
  bool on_bool(bool flag, error_code&) {
    stack_.push_bool(flag);
    return true;
  }
  bool on_null(error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(text, error_code&) { return true; }
  bool on_comment(text, error_code&) { return true; }

  value take() { return stack_.release(); }

 private:
  boost::json::value_stack stack_;
  std::string digits_;
};

[[noreturn]] void raise(const error_code& error, std::size_t position) {
  throw ValidationError("invalid JSON at byte " + std::to_string(position) + ": " + error.message());
}

}  // namespace

value parse(std::string_view text, std::size_t max_depth) {
  boost::json::parse_options options;
  options.max_depth = max_depth;
  boost::json::basic_parser<Builder> parser(options);
  error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  if (error) raise(error, used);
  return parser.handler().take();
}

}  // namespace abxbus::json

#include "wire/number.hpp"
#include "wire/utf8.hpp"

#include <abxbus/error.hpp>
#include <abxbus/json.hpp>

#include <cmath>

namespace abxbus::json {

namespace {

class Dumper {
 public:
  explicit Dumper(unsigned indent) : indent_(indent) {}

  void append(const value& source) {
    switch (source.kind()) {
      case boost::json::kind::null:
        text_ += "null";
        break;
      case boost::json::kind::bool_:
        text_ += source.get_bool() ? "true" : "false";
        break;
      case boost::json::kind::int64:
        detail::append_integer(text_, source.get_int64());
        break;
      case boost::json::kind::uint64:
        detail::append_integer(text_, source.get_uint64());
        break;
      case boost::json::kind::double_:
        append(source.get_double());
        break;
      case boost::json::kind::string:
        append(std::string_view(source.get_string()));
        break;
      case boost::json::kind::array:
        append(source.get_array());
        break;
      case boost::json::kind::object:
        append(source.get_object());
        break;
    }
  }

  void append(const array& source) {
    bool first = true;
    text_ += '[';
    for (const value& element : source) {
      separate(first);
      append(element);
    }
    close(first, ']');
  }

  void append(const object& source) {
    bool first = true;
    text_ += '{';
    for (const auto& member : source) {
      separate(first);
      append(std::string_view(member.key()));
      text_ += indent_ > 0 ? ": " : ":";
      append(member.value());
    }
    close(first, '}');
  }

  std::string take() { return std::move(text_); }

 private:
  void append(double number) {
    if (!std::isfinite(number)) throw ValidationError("JSON has no number that is not finite");
    detail::append_double(text_, number);
  }

  void append(std::string_view string) {
    if (!detail::is_utf8(string)) throw ValidationError("JSON text must be valid UTF-8");
    text_ += '"';
    std::size_t clean = 0;  // start of what was not copied yet
    for (std::size_t i = 0; i < string.size(); ++i) {
      const char c = string[i];
      if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
      text_ += string.substr(clean, i - clean);
      append_escape(c);
      clean = i + 1;
    }
    text_ += string.substr(clean);
    text_ += '"';
  }

  void append_escape(char c) {
    text_ += '\\';
    switch (c) {
      case '"':
      case '\\':
        text_ += c;
        return;
      case '\b':
        text_ += 'b';
        return;
      case '\f':
        text_ += 'f';
        return;
      case '\n':
        text_ += 'n';
        return;
      case '\r':
        text_ += 'r';
        return;
      case '\t':
        text_ += 't';
        return;
      default:
        break;
    }
    static constexpr char digits[] = "0123456789abcdef";
    text_ += "u00";
    text_ += digits[(c >> 4) & 0xF];
    text_ += digits[c & 0xF];
  }

  void separate(bool& first) {
    if (first) {
      ++level_;
    } else {
      text_ += ',';
    }
    first = false;
    new_line();
  }

  void close(bool empty, char bracket) {
    if (!empty) {
      --level_;
      new_line();
    }
    text_ += bracket;
  }

  void new_line() {
    if (indent_ == 0) return;
    text_ += '\n';
    text_.append(std::size_t{indent_} * level_, ' ');
  }

  std::string text_;
  unsigned indent_;
  std::size_t level_ = 0;
};

template <class Source>
std::string dump_any(const Source& source, unsigned indent) {
  Dumper dumper(indent);
  dumper.append(source);
  return dumper.take();
}

}  // namespace

std::string dump(const value& source, unsigned indent) {
  return dump_any(source, indent);
}

template <class Source>
requires(std::same_as<Source, object> || std::same_as<Source, array>) std::string
    dump(const Source& source, unsigned indent) {
  return dump_any(source, indent);
}
template std::string dump(const object& source, unsigned indent);
template std::string dump(const array& source, unsigned indent);

}  // namespace abxbus::json

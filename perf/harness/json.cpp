#include "harness/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace abxbus::perf {

namespace {

void write_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(letter)));
      out += escape;
    } else {
      out += letter;
    }
  }
  out += '"';
}

void write_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", number);
  out += digits;
}

void new_line(std::string& out, std::size_t indent) {
  out += '\n';
  out.append(indent, ' ');
}

}  // namespace

std::string Json::dump() const {
  std::string out;
  write(out, 0);
  out += '\n';
  return out;
}

bool Json::is_container() const {
  return std::holds_alternative<Array>(value_) || std::holds_alternative<Object>(value_);
}

void Json::write(std::string& out, std::size_t indent) const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*integer);
  } else if (const auto* number = std::get_if<double>(&value_)) {
    write_number(out, *number);
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    write_text(out, *text);
  } else if (const auto* array = std::get_if<Array>(&value_)) {
    const bool one_line =
        std::none_of(array->begin(), array->end(), [](const Json& item) { return item.is_container(); });
    out += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out += one_line ? ", " : ",";
      if (!one_line) new_line(out, indent + 2);
      (*array)[i].write(out, indent + 2);
    }
    if (!one_line) new_line(out, indent);
    out += ']';
  } else if (const auto* object = std::get_if<Object>(&value_)) {
    out += '{';
    for (std::size_t i = 0; i < object->size(); ++i) {
      if (i > 0) out += ',';
      new_line(out, indent + 2);
      write_text(out, (*object)[i].first);
      out += ": ";
      (*object)[i].second.write(out, indent + 2);
    }
    if (!object->empty()) new_line(out, indent);
    out += '}';
  } else {
    out += "null";
  }
}

}  // namespace abxbus::perf

#include "wire/utf8.hpp"

#include <abxbus/detail/codec_io.hpp>
#include <abxbus/error.hpp>
#include <abxbus/timestamp.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <charconv>
#include <chrono>
#include <cmath>
#include <vector>

namespace abxbus::detail::codec {

namespace {

/// C++ objects may refer to each other in a circle; the recursion ends here instead of on a full stack.
constexpr std::size_t max_levels = 512;

}  // namespace

struct Writer::State {
  State() { levels.reserve(4); }

  struct Level {
    /// An array or object under construction; null for a spliced object, whose members go further out.
    boost::json::value container;
    /// Name of the member that is being written.
    std::string_view key;
  };

  /// The level that members and elements go to now, and the name that leads there.
  Level& target() noexcept {
    std::size_t i = levels.size() - 1;
    while (levels[i].container.is_null()) --i;
    return levels[i];
  }

  void append(boost::json::value&& value) {
    if (levels.empty()) {
      result = std::move(value);
      return;
    }
    Level& level = target();
    if (auto* elements = level.container.if_array()) {
      elements->push_back(std::move(value));
      return;
    }
    const std::string_view name = levels.back().key;
    level.container.get_object().insert_or_assign({name.data(), name.size()}, std::move(value));
    levels.back().key = {};  // its characters may go away now
  }

  std::string path() const {
    std::string text = "$";
    for (const Level& level : levels) {
      if (const auto* elements = level.container.if_array()) {
        text += '[';
        text += std::to_string(elements->size());
        text += ']';
      } else if (!level.key.empty() && is_utf8(level.key)) {
        text += '.';
        text += level.key;
      }
    }
    return text;
  }

  boost::json::value result;
  std::vector<Level> levels;
  bool splice_next = false;
};

Writer::Writer() : state_(new State) {}
Writer::~Writer() {
  delete state_;
}

void Writer::null() {
  state_->append(nullptr);
}
void Writer::boolean(bool value) {
  state_->append(value);
}
void Writer::int64(std::int64_t value) {
  state_->append(value);
}
void Writer::uint64(std::uint64_t value) {
  // Kept in the kind that parsing its text would give.
  if (value <= static_cast<std::uint64_t>(INT64_MAX)) {
    state_->append(static_cast<std::int64_t>(value));
  } else {
    state_->append(value);
  }
}

void Writer::number(double value) {
  if (!std::isfinite(value)) reject("finite number");
  state_->append(value);
}

void Writer::string(std::string_view value) {
  if (!is_utf8(value)) reject("valid UTF-8 text");
  state_->append(boost::json::string_view(value.data(), value.size()));
}

void Writer::raw(const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::double_:
      return number(value.get_double());
    case boost::json::kind::string: {
      const boost::json::string& text = value.get_string();
      return string({text.data(), text.size()});
    }
    case boost::json::kind::array:
      return raw(value.get_array());
    case boost::json::kind::object:
      return raw(value.get_object());
    default:
      state_->append(boost::json::value(value));
  }
}

void Writer::raw(const boost::json::object& value) {
  begin_object(value.size());
  for (const auto& member : value) {
    key({member.key().data(), member.key().size()});
    raw(member.value());
  }
  end_object();
}

void Writer::raw(const boost::json::array& value) {
  begin_array(value.size());
  for (const boost::json::value& element : value) raw(element);
  end_array();
}

void Writer::time(std::int64_t ticks, std::intmax_t num, std::intmax_t den) {
  __extension__ using Wide = __int128;
  constexpr std::int64_t ns_a_second = 1'000'000'000;
  // Rounded down, as std::chrono::floor does; ns fit, since den is at most 1e18.
  const Wide scaled = Wide(ticks) * num;
  Wide seconds = scaled / den;
  Wide rest = scaled % den;
  if (rest < 0) {
    rest += den;
    --seconds;
  }
  constexpr Wide far = 100'000'000'000;  // beyond the year 5000; what follows checks exactly
  if (seconds < -far || seconds > far) reject("timestamp in the years 1991 to 2499");
  const std::chrono::sys_seconds whole(std::chrono::seconds(static_cast<std::int64_t>(seconds)));
  try {
    const auto nanoseconds = static_cast<std::uint64_t>(rest * ns_a_second / den);
    string(Timestamp::from_unix_ns(Timestamp(whole).unix_ns() + nanoseconds).str());
  } catch (const ValidationError&) {
    reject("timestamp in the years 1991 to 2499");
  }
}

void Writer::reject(std::string_view expected) {
  const std::string path = state_->path();
  throw ValidationError(path + " expected " + std::string(expected), path);
}

void Writer::begin_array(std::size_t count) {
  if (state_->levels.size() == max_levels) reject("less nesting");
  boost::json::array elements;
  elements.reserve(count);
  state_->levels.push_back({std::move(elements), {}});
}

void Writer::end_array() {
  boost::json::value finished = std::move(state_->levels.back().container);
  state_->levels.pop_back();
  state_->append(std::move(finished));
}

void Writer::begin_object(std::size_t count) {
  if (state_->levels.size() == max_levels) reject("less nesting");
  if (state_->splice_next) {
    state_->splice_next = false;
    state_->levels.push_back({nullptr, {}});
    return;
  }
  boost::json::object members;
  members.reserve(count);
  state_->levels.push_back({std::move(members), {}});
}

void Writer::end_object() {
  boost::json::value finished = std::move(state_->levels.back().container);
  state_->levels.pop_back();
  if (!finished.is_null()) state_->append(std::move(finished));
}

void Writer::key(std::string_view name) {
  if (!is_utf8(name)) reject("valid UTF-8 text as member name");
  state_->levels.back().key = name;
}

void Writer::splice() {
  state_->levels.back().key = {};
  state_->splice_next = true;
}

boost::json::value Writer::take() {
  return std::move(state_->result);
}

KeyText::KeyText(std::int64_t value) noexcept
    : size_(static_cast<std::size_t>(std::to_chars(text_, text_ + sizeof text_, value).ptr - text_)) {}
KeyText::KeyText(std::uint64_t value) noexcept
    : size_(static_cast<std::size_t>(std::to_chars(text_, text_ + sizeof text_, value).ptr - text_)) {}

}  // namespace abxbus::detail::codec

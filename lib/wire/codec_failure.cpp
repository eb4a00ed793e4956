#include <abxbus/detail/codec_io.hpp>
#include <abxbus/error.hpp>

#include <algorithm>
#include <vector>

namespace abxbus::detail::codec {

namespace {

constexpr std::string_view expectation = "expected ";

}  // namespace

bool Failure::expected(std::string_view what) {
  text_ = expectation;
  text_ += what;
  return false;
}

bool Failure::problem(std::string_view text) {
  text_ = text;
  return false;
}

bool Failure::in_member(std::string_view name) {
  path_.insert(0, name);
  path_.insert(0, 1, '.');
  return false;
}

bool Failure::in_element(std::size_t index) {
  path_.insert(0, '[' + std::to_string(index) + ']');
  return false;
}

std::string_view Failure::wanted() const noexcept {
  std::string_view text = text_;
  if (!text.starts_with(expectation)) return {};
  text.remove_prefix(expectation.size());
  return text;
}

void Failure::raise() const {
  const std::string path = '$' + path_;
  throw ValidationError(path + ' ' + text_, path);
}

bool missing_member(std::string_view name, std::string_view expected, Failure& failure) {
  failure.problem("is required, expected " + std::string(expected));
  return failure.in_member(name);
}

bool no_alternative(const Failure* tried, std::size_t count, Failure& failure) {
  const Failure* furthest = std::max_element(tried, tried + count, [](const Failure& left, const Failure& right) {
    return left.path().size() < right.path().size();
  });
  if (!furthest->at_root()) {
    failure = *furthest;
    return false;
  }
  std::vector<std::string_view> wanted;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view what = tried[i].wanted().empty() ? tried[i].text() : tried[i].wanted();
    if (std::find(wanted.begin(), wanted.end(), what) == wanted.end()) wanted.push_back(what);
  }
  std::string all;
  for (const std::string_view what : wanted) {
    if (!all.empty()) all += " or ";
    all += what;
  }
  return failure.expected(all);
}

}  // namespace abxbus::detail::codec

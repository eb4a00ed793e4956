#pragma once

#include <boost/json/fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// The two ends of the JSON codec, without the JSON library's headers: a writer that builds a value, a reader that
/// looks into one, and the description of a mismatch.

namespace abxbus::detail::codec {

enum class JsonKind : std::uint8_t { null, boolean, int64, uint64, number, string, array, object };

/// Builds one JSON value from a sequence of calls. Not synchronised. Every call that cannot be honoured (a number that
/// is not finite, text that is not UTF-8: D-JSON-5) throws ValidationError with the path of the place; what was built
/// until then is dropped with the writer.
class Writer final {
 public:
  Writer();
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void null();
  void boolean(bool value);
  void int64(std::int64_t value);
  void uint64(std::uint64_t value);
  void number(double value);
  void string(std::string_view value);
  /// A copy of a JSON value, checked for D-JSON-5.
  void raw(const boost::json::value& value);
  void raw(const boost::json::object& value);
  void raw(const boost::json::array& value);
  /// `ticks` of `num / den` seconds since 1970, as the 30-character timestamp (D-TIM-1, range D-TIM-6).
  void time(std::int64_t ticks, std::intmax_t num, std::intmax_t den);
  /// Throws ValidationError: the value that would come next has no JSON form.
  [[noreturn]] void reject(std::string_view expected);

  /// `count`: how many values will follow, as far as known.
  void begin_array(std::size_t count);
  void end_array();
  void begin_object(std::size_t count);
  void end_object();
  /// Names the next value; inside an object only. The text must live until that value is complete. A name that comes
  /// twice keeps its last value.
  void key(std::string_view name);
  /// The members of the object that comes next become members of the object that is open now.
  void splice();

  /// The value; once, after everything that was begun has ended.
  boost::json::value take();

 private:
  struct State;
  State* state_;
};

/// Looks into a JSON value that somebody else keeps alive. One pointer, to be passed by value.
class Reader final {
 public:
  constexpr Reader() noexcept = default;
  constexpr Reader(const boost::json::value& value) noexcept : value_(&value) {}

  /// False for a member that is missing; nothing else may then be called.
  constexpr explicit operator bool() const noexcept { return value_ != nullptr; }
  constexpr const boost::json::value& value() const noexcept { return *value_; }

  JsonKind kind() const noexcept;
  bool is_null() const noexcept;
  /// Each needs the kind of its name.
  bool as_bool() const noexcept;
  std::int64_t as_int64() const noexcept;
  std::uint64_t as_uint64() const noexcept;
  double as_double() const noexcept;
  std::string_view as_string() const noexcept;

  /// Elements of an array, members of an object, 0 for everything else.
  std::size_t size() const noexcept;
  /// Element of an array, or value of an object's member in insertion order.
  Reader at(std::size_t index) const noexcept;
  /// Name of an object's member in insertion order.
  std::string_view key_at(std::size_t index) const noexcept;
  /// Member of an object by name.
  Reader find(std::string_view key) const noexcept;

 private:
  const boost::json::value* value_ = nullptr;
};

/// Why a value could not be read: a problem and the path to it, put together from the inside out while the readers
/// return, so that a successful read pays nothing.
class Failure final {
 public:
  /// Both return false, for `return failure.expected("integer");`.
  bool expected(std::string_view what);
  bool problem(std::string_view text);

  bool in_member(std::string_view name);
  bool in_element(std::size_t index);

  bool at_root() const noexcept { return path_.empty(); }
  const std::string& path() const noexcept { return path_; }
  const std::string& text() const noexcept { return text_; }
  /// What was expected, empty when the problem is of another kind.
  std::string_view wanted() const noexcept;

  /// Throws ValidationError `$.path problem` with the path as field.
  [[noreturn]] void raise() const;

 private:
  std::string path_;
  std::string text_;
};

// Readers of scalars. Each returns false after describing the mismatch.
bool read_null(Reader from, Failure& failure);
bool read_bool(Reader from, bool& to, Failure& failure);
bool read_signed(Reader from, std::int64_t low, std::int64_t high, std::int64_t& to, Failure& failure);
bool read_unsigned(Reader from, std::uint64_t high, std::uint64_t& to, Failure& failure);
bool read_double(Reader from, double& to, Failure& failure);
bool read_float(Reader from, float& to, Failure& failure);
bool read_string(Reader from, std::string_view& to, Failure& failure);
/// A timestamp, or a number of seconds, as a count of `num / den` seconds that lies within the bounds.
struct TickRange {
  std::intmax_t num;
  std::intmax_t den;
  std::int64_t low;
  std::int64_t high;
};
bool read_time(Reader from, const TickRange& range, std::int64_t& to, Failure& failure);
bool read_seconds(Reader from, const TickRange& range, std::int64_t& to, Failure& failure);
/// Position of a string among `count` names.
bool read_name(Reader from, const std::string_view* names, std::size_t count, std::size_t& to, Failure& failure);
bool read_array(Reader from, Failure& failure);
bool read_array_of(Reader from, std::size_t count, Failure& failure);
bool read_object(Reader from, Failure& failure);
/// Object keys that stand for integers: decimal, the whole text, in range.
bool read_key(std::string_view text, std::int64_t low, std::int64_t high, std::int64_t& to, Failure& failure);
bool read_key(std::string_view text, std::uint64_t high, std::uint64_t& to, Failure& failure);
bool missing_member(std::string_view name, std::string_view expected, Failure& failure);
/// For a variant none of whose alternatives fits: the failure that got furthest, else all that was expected.
bool no_alternative(const Failure* tried, std::size_t count, Failure& failure);

/// Decimal text of an integer key, in a buffer of its own.
class KeyText final {
 public:
  explicit KeyText(std::int64_t value) noexcept;
  explicit KeyText(std::uint64_t value) noexcept;
  std::string_view view() const noexcept { return {text_, size_}; }

 private:
  char text_[24];
  std::size_t size_;
};

}  // namespace abxbus::detail::codec

#pragma once

#include <abxbus/detail/codec.hpp>
#include <abxbus/detail/record_head.hpp>
#include <abxbus/error.hpp>
#include <abxbus/event_result.hpp>
#include <abxbus/json_fwd.hpp>

#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace abxbus::detail {

/// Waits as the accessors do (T-RES-20..25) and returns the results in T-RES-10 order.
EventResults accessor_results(RecordHead* record, bool first, bool wait, const std::stop_token& stop);
/// Rethrows the only error, or throws EventHandlerErrors (T-RES-5); returns when no result failed.
void raise_errors(const EventResults& results, RecordHead* record);
[[noreturn]] void raise_none(RecordHead* record);
/// A stored value as JSON. Throws ValidationError for a value without JSON form.
json::ref value_as_json(const Value& value);
/// A handler's value as stored JSON or C++ object, `nullptr` for none.
[[noreturn]] void raise_undecodable(const EventResult& result, std::exception_ptr cause);

/// Converts a stored value; nothing for an empty one, an error or an event (D-TEV-8). Throws ValidationError.
template <class R>
std::optional<R> convert_value(const Value* value) {
  if (value == nullptr || value->empty() || value->is(ValueKind::error) || value->is(ValueKind::event))
    return std::nullopt;
  if (const R* exact = value->template get_if<R>()) return *exact;
  if constexpr (std::is_same_v<R, json::value>) {
    return value_as_json(*value).get();
  } else {
    static_assert(codec::readable<R>, "abxbus: this result type has no JSON form to be read from");
    return codec::decode<R>(value_as_json(*value).get());
  }
}

template <class R>
std::optional<R> accessor_value(const EventResult& result) {
  try {
    return convert_value<R>(result.settled());
  } catch (const ValidationError&) {
    raise_undecodable(result, std::current_exception());
  }
}

template <class R, class Options>
bool included(const Options& options, const EventResult& result, std::optional<R>& value) {
  if (!options.include) {
    if (!result.usable()) return false;
    value = accessor_value<R>(result);
    return true;
  }
  value = accessor_value<R>(result);
  return options.include(value, result);
}

template <class R, class Options>
std::optional<R> pick_first(const EventResults& results, const Options& options, RecordHead* record) {
  if (options.raise_if_any) raise_errors(results, record);
  for (const EventResult& result : results) {
    std::optional<R> value;
    if (included<R>(options, result, value)) return value;
  }
  if (options.raise_if_none) raise_none(record);
  return std::nullopt;
}

template <class R, class Options>
std::vector<std::optional<R>> pick_all(const EventResults& results, const Options& options, RecordHead* record) {
  if (options.raise_if_any) raise_errors(results, record);
  std::vector<std::optional<R>> values;
  for (const EventResult& result : results) {
    std::optional<R> value;
    if (included<R>(options, result, value)) values.push_back(std::move(value));
  }
  if (values.empty() && options.raise_if_none) raise_none(record);
  return values;
}

}  // namespace abxbus::detail

template <class R>
std::optional<R> abxbus::EventResult::result_as() const {
  return detail::convert_value<R>(settled());
}

template <class R>
std::optional<R> abxbus::EventResult::get(WaitOptions options) const {
  wait(std::move(options));
  if (const std::exception_ptr failure = error()) std::rethrow_exception(failure);
  return detail::convert_value<R>(settled());
}

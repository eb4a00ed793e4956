#include "harness/options.hpp"

#include <algorithm>
#include <charconv>

namespace abxbus::perf {

namespace {

int parse_number(std::string_view option, std::string_view text, int least) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least)
    throw UsageError(std::string(option) + " needs a whole number from " + std::to_string(least) + " on, not '" +
                     std::string(text) + "'");
  return number;
}

const Scenario& scenario_named(std::string_view id, std::span<const Scenario> scenarios) {
  const auto found = std::find_if(scenarios.begin(), scenarios.end(), [&](const Scenario& s) { return s.id == id; });
  if (found == scenarios.end()) throw UsageError("unknown scenario '" + std::string(id) + "'; --list names them");
  return *found;
}

// The words of the command line; `--option=value` counts as two.
class Words {
 public:
  explicit Words(std::span<const char* const> arguments) : left_(arguments) {}
  bool empty() const { return left_.empty(); }
  std::string_view option() {
    const std::string_view word = take();
    const auto equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string_view::npos) return word;
    value_ = word.substr(equals + 1);
    return word.substr(0, equals);
  }
  std::string_view value_of(std::string_view option) {
    if (value_) return *std::exchange(value_, std::nullopt);
    if (empty()) throw UsageError(std::string(option) + " needs a value");
    return take();
  }
  void expect_no_value(std::string_view option) const {
    if (value_) throw UsageError(std::string(option) + " takes no value");
  }

 private:
  std::string_view take() {
    const std::string_view word = left_.front();
    left_ = left_.subspan(1);
    return word;
  }
  std::span<const char* const> left_;
  std::optional<std::string_view> value_;
};

}  // namespace

Options parse_options(std::span<const char* const> arguments, std::span<const Scenario> scenarios) {
  Options options;
  Words words(arguments);
  while (!words.empty()) {
    const std::string_view option = words.option();
    if (option == "--scenario") {
      options.scenarios.push_back(&scenario_named(words.value_of(option), scenarios));
    } else if (option == "--repeat") {
      options.repeat = parse_number(option, words.value_of(option), 1);
    } else if (option == "--warmup") {
      options.warmup = parse_number(option, words.value_of(option), 0);
    } else if (option == "--workers") {
      options.workers = parse_number(option, words.value_of(option), 1);
    } else if (option == "--json") {
      options.json_file = words.value_of(option);
    } else if (option == "--quick") {
      options.quick = true;
    } else if (option == "--list") {
      options.list = true;
    } else if (option == "--allow-debug") {
      options.allow_debug = true;
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else {
      throw UsageError("unknown option '" + std::string(option) + "'");
    }
    words.expect_no_value(option);
  }
  if (options.scenarios.empty()) {
    for (const Scenario& scenario : scenarios) options.scenarios.push_back(&scenario);
  }
  return options;
}

std::string usage(std::string_view program) {
  return "usage: " + std::string(program) +
         " [--scenario ID]... [--repeat N] [--warmup N] [--workers N]\n"
         "                   [--json FILE] [--quick] [--allow-debug] | --list | --help\n"
         "\n"
         "  --scenario ID   only this one; may be given several times (default: all)\n"
         "  --repeat N      measured repetitions of each (default: 1 to 7, by length)\n"
         "  --warmup N      repetitions before those that are not measured (default: 0 or 1, by length)\n"
         "  --workers N     worker threads (default: one a core)\n"
         "  --json FILE     also write the results there\n"
         "  --quick         one repetition, and fewer events in the long scenarios\n"
         "  --allow-debug   measure a build without optimisation all the same\n"
         "  --list          print the scenario ids, one a line\n"
         "\n"
         "Exit: 0 measured and all checks held, 1 a check failed, 2 bad command line.\n";
}

}  // namespace abxbus::perf

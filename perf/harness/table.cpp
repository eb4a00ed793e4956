#include "harness/table.hpp"

#include "harness/published.hpp"
#include "harness/text.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace abxbus::perf {

namespace {

// name | units | total | ns per unit: median, min, max | units per second | live, peak, resident bytes per unit
constexpr std::size_t name_width = 33;
constexpr std::size_t units_width = 20;
constexpr std::size_t total_width = 10;
constexpr std::size_t figure_width = 9;
constexpr std::size_t rate_width = 11;
constexpr std::size_t table_width = 1 + name_width + units_width + total_width + 6 * figure_width + rate_width;

std::string bytes(const std::optional<double>& value) {
  return value ? significant(*value) : "–";
}

std::string units(std::int64_t count, std::string_view unit) {
  return joined({grouped(count), " ", left(unit, 7)});
}

std::string line_of(std::string_view name, std::string_view count, std::string_view total,
                    const std::vector<std::string>& times, std::string_view per_second,
                    const std::vector<std::string>& memory) {
  std::string line = joined({" ", left(name, name_width), right(count, units_width), right(total, total_width)});
  for (const std::string& time : times) line += right(time, figure_width);
  line += right(per_second, rate_width);
  for (const std::string& one : memory) line += right(one, figure_width);
  while (line.ends_with(' ')) line.pop_back();
  line += '\n';
  return line;
}

std::string reference_line(const Reference& reference) {
  const std::string loop = duration(reference.loop_ns);
  const std::string trip = reference.round_trip_ns ? duration(*reference.round_trip_ns) : "not measurable";
  return joined({"reference: 3 clock readings + 5 locked increments ", loop,
                 " · spinning round trip between two cores ", trip, "\n"});
}

std::string readable(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// What a scenario measures beyond its row: one line a group.
std::string details_of(const Result& result) {
  std::string text;
  std::optional<std::string> group;
  for (const Extra& extra : result.extra) {
    if (group != extra.group) {
      const std::string label = left(text.empty() ? result.scenario->id : std::string_view(), name_width + 2);
      text += joined({text.empty() ? " " : "\n ", label});
      group = extra.group;
    } else {
      text += " · ";
    }
    text += joined({readable(extra.name), " ", significant(extra.value)});
  }
  if (!text.empty()) text += '\n';
  return text;
}

std::string total_line(const Results& results) {
  double total_ns = 0;
  std::int64_t count = 0;
  for (const Result& result : results) {
    if (!result.measured()) continue;
    total_ns += result.median_total_ns();
    count += result.count;
  }
  const double per_second = total_ns > 0 ? static_cast<double>(count) * 1e9 / total_ns : 0;
  return line_of("total", units(count, "units"), duration(total_ns), {"", "", ""}, rate(per_second), {});
}

std::string references_line(const Results& results) {
  double least = 0;
  double most = 0;
  for (const Result& result : results) {
    const double loop = result.reference.loop_ns;
    if (loop <= 0) continue;
    least = least > 0 ? std::min(least, loop) : loop;
    most = std::max(most, loop);
  }
  return joined({" reference loop before each scenario: ", duration(least), " to ", duration(most),
                 " (compare runs by ratios to it)\n"});
}

}  // namespace

std::string head_of_table(std::string_view program, const Machine& machine, const Reference& reference) {
  return joined(
      {program,
       " · ",
       machine.cpu,
       " · ",
       std::to_string(machine.cores),
       " cores · ",
       machine.compiler,
       " · ",
       machine.build_type,
       " · ",
       machine.allocator,
       " · ",
       std::to_string(machine.workers),
       " workers\n",
       reference_line(reference),
       "\n",
       line_of("", "", "", {"ns/unit", "", ""}, "", {"live", "peak", "peak RSS"}),
       line_of("scenario", "units   ", "total", {"median", "min", "max"}, "rate", {"B/unit", "B/unit", "B/unit"}),
       rule(table_width),
       "\n"});
}

std::string row_of(const Result& result) {
  std::string row;
  if (result.measured()) {
    const double median = result.median_ns();
    row = line_of(
        result.scenario->id, units(result.count, name_of(result.scenario->unit)), duration(result.median_total_ns()),
        {significant(median), significant(result.min_ns()), significant(result.max_ns())}, rate(1e9 / median),
        {bytes(result.live_bytes_per_unit), bytes(result.peak_bytes_per_unit), bytes(result.peak_rss_bytes_per_unit)});
  }
  if (!result.failure.empty())
    row += joined({" ", left(result.scenario->id, name_width), "  FAILED: ", result.failure, "\n"});
  return row;
}

std::string foot_of_table(std::string_view runtime, const Results& results) {
  std::string details;
  for (const Result& result : results) details += details_of(result);
  return joined({rule(table_width), "\n", total_line(results), references_line(results), details.empty() ? "" : "\n",
                 details, published_section(results), "\n", matrix_row(runtime, results)});
}

}  // namespace abxbus::perf

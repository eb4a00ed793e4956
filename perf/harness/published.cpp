#include "harness/published.hpp"

#include "harness/text.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace abxbus::perf {

namespace {

/// A column of upstream's matrix and the best figure any of its runtimes shows there.
struct Published {
  std::string_view scenario;
  std::string_view column;
  double best_ms;
  std::optional<double> best_kb = {};
};

constexpr std::array<Published, 5> columns{{
    {"50k-events", "1 bus x 50k events x 1 handler", 0.016},
    {"500-buses-x-100-events", "500 buses x 100 events x 1 handler", 0.011},
    {"1-event-x-50k-parallel-handlers", "1 bus x 1 event x 50k parallel handlers", 0.062, 10.2},
    {"50k-one-off-handlers", "1 bus x 50k events x 50k one-off handlers", 0.011},
    {"worst-case-forwarding-timeouts", "Worst case (N buses x N events x N handlers)", 0.041},
}};

const Result* measured(const Results& results, std::string_view scenario) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const Result& result) {
    return result.scenario->id == scenario && result.measured();
  });
  return found == results.end() ? nullptr : &*found;
}

std::optional<double> rss_kb(const Result& result) {
  if (!result.peak_rss_bytes_per_unit) return std::nullopt;
  return *result.peak_rss_bytes_per_unit / 1024;
}

std::string comparison(std::string_view name, std::string_view unit, double published, double here) {
  const std::string factor = here > 0 ? joined({significant(published / here), " x"}) : "–";
  return joined({" ", left(name, 33), right(significant(published), 10), " ", left(unit, 12),
                 right(significant(here), 12), " ", left(unit, 12), right(factor, 12), "\n"});
}

}  // namespace

std::string published_section(const Results& results) {
  constexpr std::size_t width = 94;
  std::string rows;
  bool sleeps = false;
  for (const Published& column : columns) {
    const Result* result = measured(results, column.scenario);
    if (result == nullptr) continue;
    const std::string unit(name_of(result->scenario->unit));
    rows += comparison(column.scenario, joined({"ms/", unit}), column.best_ms, result->median_ns() / 1e6);
    if (const auto kb = rss_kb(*result); column.best_kb && kb)
      rows += comparison("", joined({"kB/", unit}), *column.best_kb, *kb);
    if (const auto floor = result->extra_value("sleep_floor_ns_per_unit")) {
      rows += joined(
          {" ", left("  of which deliberate sleep", 56), right(significant(*floor / 1e6), 12), " ms/", unit, "\n"});
      sleeps = true;
    }
  }
  if (rows.empty()) return {};
  return joined({"\n ", left("beside upstream's best", 33), right("published", 10), right("here", 25),
                 right("factor", 25), "\n", rule(width), "\n", rows, rule(width), "\n",
                 " published: best of upstream's Python, TypeScript, Rust and Go, on its own machine",
                 sleeps ? "; sleep included in both" : "", "\n"});
}

std::string matrix_row(std::string_view runtime, const Results& results) {
  std::string head = "| Runtime |";
  std::string line = "| --- |";
  std::string row = joined({"| ", runtime, " |"});
  for (const Published& column : columns) {
    head += joined({" ", column.column, " |"});
    line += " --- |";
    const Result* result = measured(results, column.scenario);
    if (result == nullptr) {
      row += " – |";
      continue;
    }
    const std::string unit(name_of(result->scenario->unit));
    row += joined({" `", significant(result->median_ns() / 1e6), "ms/", unit, "`"});
    if (const auto kb = rss_kb(*result)) row += joined({", `", significant(*kb), "kb/", unit, "`"});
    row += " |";
  }
  return joined({head, "\n", line, "\n", row, "\n"});
}

}  // namespace abxbus::perf

#include "harness/runner.hpp"

#include "harness/program.hpp"
#include "harness/resident.hpp"
#include "harness/statistics.hpp"

#include <algorithm>
#include <exception>
#include <string>

namespace abxbus::perf {

namespace {

/// Upstream's own limit (P-DRV-5): 0.300 ms a unit, deliberate sleeping not included.
constexpr double budget_ns_per_unit = 300'000;

void keep_highest(std::optional<double>& kept, const std::optional<double>& value) {
  if (value) kept = std::max(kept.value_or(*value), *value);
}

// The same figure of several repetitions becomes their median.
std::vector<Extra> medians_of(const std::vector<Sample>& samples) {
  std::vector<Extra> medians;
  if (samples.empty()) return medians;
  for (const Extra& extra : samples.front().extra) {
    std::vector<double> values;
    for (const Sample& sample : samples) {
      for (const Extra& other : sample.extra) {
        if (other.group == extra.group && other.name == extra.name) values.push_back(other.value);
      }
    }
    medians.push_back({extra.group, extra.name, median(std::move(values))});
  }
  return medians;
}

void bring_together(Result& result, const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    result.count = sample.count;
    result.total_ns.push_back(sample.total_ns);
    result.ns_per_unit.push_back(static_cast<double>(sample.total_ns) / static_cast<double>(sample.count));
    keep_highest(result.live_bytes_per_unit, sample.live_bytes_per_unit);
    keep_highest(result.peak_bytes_per_unit, sample.peak_bytes_per_unit);
  }
  result.extra = medians_of(samples);
}

void check_budget(const Result& result) {
  if (result.scenario->sleeps) return;
  const double spent = result.median_ns() - result.extra_value("sleep_floor_ns_per_unit").value_or(0);
  check(spent <= budget_ns_per_unit, std::to_string(spent / 1e6) + " ms a unit are above the budget of 0.300");
}

}  // namespace

double Result::median_ns() const {
  return median(ns_per_unit);
}
double Result::min_ns() const {
  return *std::min_element(ns_per_unit.begin(), ns_per_unit.end());
}
double Result::max_ns() const {
  return *std::max_element(ns_per_unit.begin(), ns_per_unit.end());
}
double Result::median_total_ns() const {
  return median(std::vector<double>(total_ns.begin(), total_ns.end()));
}

std::optional<double> Result::extra_value(std::string_view name) const {
  for (const Extra& one : extra) {
    if (one.group.empty() && one.name == name) return one.value;
  }
  return std::nullopt;
}

Result run_scenario(const Program& program, const Scenario& scenario, const Options& options) {
  const int warmup = options.warmup.value_or(scenario.warmup);
  const int repeat = options.repeat.value_or(options.quick ? 1 : scenario.repeat);
  Result result{.scenario = &scenario};
  Progress progress(scenario.id);
  const Run run{.quick = options.quick, .workers = options.workers, .progress = progress};
  std::vector<Sample> samples;
  try {
    if (program.settle != nullptr) program.settle();
    result.reference = measure_reference();
    const ResidentGrowth resident;
    for (int i = 0; i < warmup; ++i) scenario.run(run);
    for (int i = 0; i < repeat; ++i) {
      progress.step("repetition " + std::to_string(i + 1) + " of " + std::to_string(repeat));
      samples.push_back(scenario.run(run));
    }
    bring_together(result, samples);
    if (const auto bytes = resident.peak_bytes())
      result.peak_rss_bytes_per_unit = static_cast<double>(*bytes) / static_cast<double>(result.count);
    if (program.check_nothing_left != nullptr) program.check_nothing_left();
    check_budget(result);
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

}  // namespace abxbus::perf

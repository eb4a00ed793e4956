#include "harness/json_report.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace abxbus::perf {

namespace {

Json machine_json(const Machine& machine) {
  return Json::Object{{"cpu", machine.cpu},
                      {"cores", machine.cores},
                      {"compiler", machine.compiler},
                      {"build_type", machine.build_type},
                      {"allocator", machine.allocator},
                      {"workers", machine.workers}};
}

Json reference_json(const Reference& reference) {
  return Json::Object{{"loop_ns", reference.loop_ns}, {"round_trip_ns", reference.round_trip_ns}};
}

Json spread_json(const Result& result) {
  if (!result.measured()) return Json::Object{{"median", {}}, {"min", {}}, {"max", {}}};
  return Json::Object{{"median", result.median_ns()}, {"min", result.min_ns()}, {"max", result.max_ns()}};
}

Json memory_json(const Result& result) {
  std::optional<double> rss_kb = result.peak_rss_bytes_per_unit;
  if (rss_kb) *rss_kb /= 1024;
  return Json::Object{{"live_bytes_per_unit", result.live_bytes_per_unit},
                      {"peak_bytes_per_unit", result.peak_bytes_per_unit},
                      {"peak_rss_kb_per_unit", rss_kb}};
}

// Figures of a group become one object, named like the group.
Json extra_json(const Result& result) {
  Json::Object extra;
  std::vector<std::pair<std::string, Json::Object>> groups;
  for (const Extra& one : result.extra) {
    if (one.group.empty()) {
      extra.emplace_back(one.name, one.value);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == one.group; });
    if (group == groups.end()) group = groups.insert(groups.end(), {one.group, {}});
    group->second.emplace_back(one.name, one.value);
  }
  for (auto& [name, figures] : groups) extra.emplace_back(name, std::move(figures));
  return extra;
}

Json result_json(const Result& result) {
  return Json::Object{{"scenario", std::string(result.scenario->id)},
                      {"unit", std::string(name_of(result.scenario->unit))},
                      {"count", result.count},
                      {"repeat", result.total_ns.size()},
                      {"total_ns", Json::Array(result.total_ns.begin(), result.total_ns.end())},
                      {"ns_per_unit", spread_json(result)},
                      {"memory", memory_json(result)},
                      {"extra", extra_json(result)},
                      {"reference", reference_json(result.reference)},
                      {"failure", result.failure.empty() ? Json() : Json(result.failure)}};
}

}  // namespace

Json json_report(std::string_view program, const Machine& machine, const Results& results) {
  Json::Array entries;
  for (const Result& result : results) entries.push_back(result_json(result));
  return Json::Object{{"version", 1},
                      {"program", std::string(program)},
                      {"machine", machine_json(machine)},
                      {"results", std::move(entries)}};
}

}  // namespace abxbus::perf

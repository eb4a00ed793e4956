#include "harness/program.hpp"

#include "harness/json_report.hpp"
#include "harness/machine.hpp"
#include "harness/runner.hpp"
#include "harness/table.hpp"

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace abxbus::perf {

namespace {

constexpr int exit_check_failed = 1;
constexpr int exit_usage = 2;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void complain(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

int measure(const Program& program, const Options& options) {
  std::ofstream json_file;
  if (!options.json_file.empty()) {
    json_file.open(options.json_file);
    if (!json_file) throw UsageError("cannot write " + options.json_file);
  }
  if (program.configure != nullptr) program.configure(options);
  const Machine machine = describe_machine(program.workers(options));
  Results results;
  print(head_of_table(program.name, machine, measure_reference()));
  for (const Scenario* scenario : options.scenarios) {
    results.push_back(run_scenario(program, *scenario, options));
    print(row_of(results.back()));
  }
  print(foot_of_table(program.runtime, results));
  if (json_file.is_open()) {
    json_file << json_report(program.name, machine, results).dump() << std::flush;
    if (!json_file) throw std::runtime_error("could not write all of " + options.json_file);
  }
  int code = 0;
  for (const Result& result : results) {
    if (result.failure.empty()) continue;
    complain("FAILED " + std::string(result.scenario->id) + ": " + result.failure);
    code = exit_check_failed;
  }
  return code;
}

int dispatch(const Program& program, const Options& options) {
  if (options.help) {
    print(usage(program.name));
    return 0;
  }
  if (options.list) {
    for (const Scenario& scenario : program.scenarios) print(std::string(scenario.id) + "\n");
    return 0;
  }
  if (!is_optimised_build() && !options.allow_debug) {
    complain(std::string(program.name) +
             " was built without optimisation or with a sanitizer; its figures would say nothing. Build the release "
             "preset, or give --allow-debug.");
    return exit_usage;
  }
  return measure(program, options);
}

}  // namespace

int run_program(const Program& program, int argc, const char* const* argv) {
  try {
    const auto count = static_cast<std::size_t>(argc > 0 ? argc - 1 : 0);
    return dispatch(program, parse_options({argv + (argc > 0 ? 1 : 0), count}, program.scenarios));
  } catch (const UsageError& error) {
    complain(std::string(program.name) + ": " + error.what() + "\n\n" + usage(program.name));
    return exit_usage;
  } catch (const std::exception& error) {
    complain(std::string(program.name) + ": " + error.what());
    return exit_check_failed;
  }
}

}  // namespace abxbus::perf

// abxbus_perf as a user or a script sees it: command line, output for people, JSON, and the checks of its scenarios.

#include "support/catch.hpp"

#include <boost/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder of this process, removed at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("abxbus_perf_driver." + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

Outcome run(const Folder& folder, const std::string& arguments) {
  const fs::path out = folder / "out";
  const fs::path err = folder / "err";
  const std::string command =
      std::string("'") + ABXBUS_PERF_PROGRAM + "' " + arguments + " >'" + out.string() + "' 2>'" + err.string() + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
}

/// One quick run of a scenario that has to hold all its checks; its entry of the JSON file.
json::object scenario(const std::string& id) {
  const Folder folder;
  const fs::path file = folder / "results.json";
  const Outcome outcome = run(folder, "--quick --scenario " + id + " --json '" + file.string() + "'");
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.status == 0);
  const json::value whole = json::parse(contents(file));
  REQUIRE(whole.at("results").as_array().size() == 1);
  json::object result = whole.at("results").as_array()[0].as_object();
  REQUIRE(result.at("scenario").as_string() == id);
  CHECK(result.at("ns_per_unit").at("median").to_number<double>() > 0);
  return result;
}

std::int64_t count_of(const json::object& result) {
  return result.at("count").to_number<std::int64_t>();
}

double extra_of(const json::object& result, const char* name) {
  return result.at("extra").at(name).to_number<double>();
}

}  // namespace

TEST_CASE("the scenarios are listed by id; what is unknown ends with the usage and 2", "[P-DRV-1]") {
  const Folder folder;
  const Outcome list = run(folder, "--list");
  CHECK(list.status == 0);
  CHECK(
      list.out ==
      "50k-events\n500-buses-x-100-events\n1-event-x-50k-parallel-handlers\n50k-one-off-handlers\n"
      "worst-case-forwarding-timeouts\nworst-case-parent-child-timeouts\ncleanup-equivalence\nfanout-io\nsustained\n");
  for (const char* wrong : {"--no-such-option", "--scenario no-such-scenario", "--repeat none", "--repeat"}) {
    const Outcome outcome = run(folder, wrong);
    CAPTURE(wrong);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("usage: abxbus_perf") != std::string::npos);
  }
}

TEST_CASE("people read a line a scenario, the machine's reference, and the row of upstream's matrix",
          "[P-DRV-2][P-DRV-7][P-DRV-4]") {
  const Folder folder;
  const Outcome outcome = run(folder, "--quick --scenario 50k-events --scenario cleanup-equivalence");
  REQUIRE(outcome.status == 0);
  CHECK(outcome.out.find("\n 50k-events ") != std::string::npos);
  CHECK(outcome.out.find("\n cleanup-equivalence ") != std::string::npos);
  CHECK(outcome.out.find("reference: ") != std::string::npos);
  CHECK(outcome.out.find("| C++ (abxbus-cpp) |") != std::string::npos);
  CHECK(outcome.out.find("ms/event") != std::string::npos);
  CHECK(outcome.err.empty());  // not a terminal: no progress
}

TEST_CASE("the JSON file has every key, also those that were not measured", "[P-DRV-1][P-DRV-3][P-DRV-7][P-MEM-1]") {
  const Folder folder;
  const fs::path file = folder / "results.json";
  const Outcome outcome = run(folder,
                              "--scenario 50k-events --scenario cleanup-equivalence --repeat 3 --warmup 1 --workers 2"
                              " --json '" +
                                  file.string() + "'");
  REQUIRE(outcome.status == 0);
  const json::value whole = json::parse(contents(file));
  CHECK(whole.at("version") == 1);
  for (const char* key : {"cpu", "cores", "compiler", "build_type", "allocator", "workers"})
    CHECK(whole.at("machine").as_object().contains(key));
  CHECK(whole.at("machine").at("workers") == 2);
  REQUIRE(whole.at("results").as_array().size() == 2);
  for (const json::value& each : whole.at("results").as_array()) {
    const json::object& result = each.as_object();
    CHECK(result.at("unit") == "event");
    CHECK(result.at("repeat") == 3);
    CHECK(result.at("total_ns").as_array().size() == 3);
    const json::value& ns = result.at("ns_per_unit");
    CHECK(ns.at("min").to_number<double>() <= ns.at("median").to_number<double>());
    CHECK(ns.at("median").to_number<double>() <= ns.at("max").to_number<double>());
    for (const char* key : {"live_bytes_per_unit", "peak_bytes_per_unit", "peak_rss_kb_per_unit"})
      CHECK(result.at("memory").as_object().contains(key));
    CHECK(result.contains("extra"));
    CHECK(result.contains("reference"));
  }
  const json::value& events = whole.at("results").as_array()[0].at("memory");
  // Usable bytes of a record with its payload and result: less than two of its size, more than its header.
  CHECK(events.at("live_bytes_per_unit").to_number<double>() > 256);
  CHECK(events.at("live_bytes_per_unit").to_number<double>() <= 384);
  CHECK(whole.at("results").as_array()[1].at("memory").at("live_bytes_per_unit").is_null());
}

TEST_CASE("P-SCN-1: 50 000 events on one bus", "[P-SCN-1][P-DRV-5]") {
  CHECK(count_of(scenario("50k-events")) == 50'000);
}

TEST_CASE("P-SCN-2: 500 buses with 100 events each", "[P-SCN-2]") {
  CHECK(count_of(scenario("500-buses-x-100-events")) == 50'000);
}

TEST_CASE("P-SCN-3: one event with 50 000 parallel handlers", "[P-SCN-3]") {
  const json::object result = scenario("1-event-x-50k-parallel-handlers");
  CHECK(count_of(result) == 50'000);
  CHECK(result.at("unit") == "handler");
  CHECK(extra_of(result, "register_ns_per_handler") > 0);
}

TEST_CASE("P-SCN-4: 50 000 handlers of one event each", "[P-SCN-4]") {
  CHECK(count_of(scenario("50k-one-off-handlers")) == 50'000);
}

TEST_CASE("P-SCN-5: the worst case with forwarding and timeouts", "[P-SCN-5]") {
  const json::object result = scenario("worst-case-forwarding-timeouts");
  CHECK(count_of(result) == 1'500);
  CHECK(std::abs(extra_of(result, "sleep_floor_ns_per_unit") - 25 * 1e6 / 1'500) < 1);
}

TEST_CASE("P-SCN-6: the worst case with parents and children", "[P-SCN-6]") {
  const json::object result = scenario("worst-case-parent-child-timeouts");
  CHECK(count_of(result) == 2'000);
  CHECK(std::abs(extra_of(result, "sleep_floor_ns_per_unit") - 50'000) < 1);
}

TEST_CASE("P-SCN-7: two ways to end a bus leave the same", "[P-SCN-7]") {
  CHECK(count_of(scenario("cleanup-equivalence")) == 2 * 80 * 64);
}

TEST_CASE("P-SCN-8: handlers that block overlap", "[P-SCN-8]") {
  const json::object result = scenario("fanout-io");
  CHECK(count_of(result) == 2 * 800);
  CHECK(extra_of(result, "gain") >= 2.5);
}

TEST_CASE("P-SCN-9: producers that wait for nothing", "[P-SCN-9]") {
  const json::object result = scenario("sustained");
  for (const char* producers : {"producers_1", "producers_4", "producers_16"}) {
    const json::value& extra = result.at("extra").at(producers);
    for (const char* key : {"emit_p50_ns", "emit_p99_ns", "emit_p99.9_ns", "ns_per_event"})
      CHECK(extra.at(key).to_number<double>() > 0);
  }
}

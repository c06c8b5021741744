#include "test/process/trained_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

using Json = nlohmann::json;

namespace {

std::string settings_of(std::size_t servers, const std::string& more, const std::string& sections) {
  return "backend: kvstore\nkvstore: {lost_after_ms: 1000, servers: " + server_entries(servers) +
         ", " + more + "}\n" + sections;
}

}  // namespace

TrainedStore::TrainedStore(std::size_t workers, std::size_t servers, const std::string& more,
                           const std::string& sections)
    : run_(workers, settings_of(servers, more, sections)) {
  for (std::size_t i = 0; i < servers; ++i) start_server("s" + std::to_string(i + 1));
}

std::filesystem::path TrainedStore::output(const std::string& name) const {
  return run_.directory() / (name + ".steps");
}

void TrainedStore::start_server(const std::string& name) {
  processes_.erase(name);
  processes_.emplace(name, test::start_server(run_.file(), name));
}

void TrainedStore::start(const std::string& name, int steps, int step_ms) {
  processes_.erase(name);
  processes_.emplace(
      name, ChildProcess({DPWA_COLLECTIVE_TRAINER, run_.file(), name, std::to_string(steps),
                          std::to_string(step_ms), "24", output(name)},
                         run_.directory() / (name + ".log"), {"OMP_NUM_THREADS=1"}));
}

void TrainedStore::start_all(int steps) {
  for (const std::string& name : run_.names()) start(name, steps);
}

std::vector<Json> TrainedStore::lines(const std::string& name) const {
  std::vector<Json> found;
  std::ifstream file(output(name));
  for (std::string line; std::getline(file, line) && !file.eof();)
    found.push_back(Json::parse(line));
  return found;
}

double TrainedStore::clock(const std::string& name) const {
  const auto all = lines(name);
  return all.empty() || !all.back().contains("clock") ? 0 : all.back()["clock"].get<double>();
}

bool TrainedStore::reaches(const std::string& name, double clock_wanted) const {
  return eventually([&] { return clock(name) >= clock_wanted; }, run_patience);
}

std::size_t TrainedStore::count(const std::string& name, const std::string& outcome) const {
  const auto all = lines(name);
  return static_cast<std::size_t>(std::ranges::count_if(all, [&](const Json& line) {
    return line.contains("outcome") && line["outcome"] == outcome;
  }));
}

std::string TrainedStore::status_check() const {
  const auto output = run_.directory() / "check.txt";
  std::filesystem::remove(output);
  ChildProcess check({DPWA_CLI, "status", "--check", run_.file()}, output);
  return check.wait(run_patience) == 0 ? "" : read_text(output);
}

void TrainedStore::check_end(const std::vector<std::string>& workers, bool merged) {
  for (const std::string& name : workers) {
    const auto code = at(name).wait(2 * run_patience);
    INFO(logs());
    REQUIRE(code == 0);
  }
  std::map<double, std::uint32_t> sums;
  for (const std::string& name : workers) {
    CHECK(lines(name).back()["sum"] == lines(workers.front()).back()["sum"]);
    for (const Json& line : lines(name)) {
      if (!merged || !line.contains("clock") || line["outcome"] != "averaged") continue;
      const auto [known, is_new] = sums.emplace(line["clock"], line["sum"]);
      CAPTURE(name);
      CAPTURE(line.dump());
      CHECK(known->second == line["sum"]);
    }
  }
}

}  // namespace dpwa::test

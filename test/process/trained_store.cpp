#include "test/process/trained_store.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

using Json = nlohmann::json;

SmallTrainers::SmallTrainers(std::size_t nodes, const std::string& settings, std::size_t hidden)
    : run_(nodes, settings), hidden_(hidden) {}

std::filesystem::path SmallTrainers::output(const std::string& name) const {
  return run_.directory() / (name + ".steps");
}

void SmallTrainers::start(const std::string& name, int steps, int step_ms) {
  processes_.erase(name);
  processes_.emplace(
      name, ChildProcess({DPWA_COLLECTIVE_TRAINER, run_.file(), name, std::to_string(steps),
                          std::to_string(step_ms), std::to_string(hidden_), output(name)},
                         run_.directory() / (name + ".log"), {"OMP_NUM_THREADS=1"}));
}

void SmallTrainers::start_all(int steps, int step_ms) {
  for (const std::string& name : run_.names()) start(name, steps, step_ms);
}

void SmallTrainers::kill(const std::vector<std::string>& names) {
  for (const std::string& name : names) at(name).signal(SIGKILL);
  for (const std::string& name : names) {
    REQUIRE(at(name).wait(run_patience) == -SIGKILL);
    last_steps_.emplace(name, lines(name).size() - 1);
  }
}

std::vector<Json> SmallTrainers::lines(const std::string& name) const {
  std::vector<Json> found;
  std::ifstream file(output(name));
  for (std::string line; std::getline(file, line) && !file.eof();)
    found.push_back(Json::parse(line));
  return found;
}

double SmallTrainers::clock(const std::string& name) const {
  const auto all = lines(name);
  return all.empty() || !all.back().contains("clock") ? 0 : all.back()["clock"].get<double>();
}

bool SmallTrainers::reaches(const std::string& name, double clock_wanted) const {
  return eventually([&] { return clock(name) >= clock_wanted; }, run_patience);
}

std::size_t SmallTrainers::check_end(const std::vector<std::string>& names, bool merged) {
  for (const std::string& name : names) {
    const auto code = at(name).wait(2 * run_patience);
    INFO(logs());
    REQUIRE(code == 0);
    CHECK(lines(name).back()["sum"] == lines(names.front()).back()["sum"]);
  }
  std::map<double, std::uint32_t> sums;
  std::size_t shared = 0;
  for (const std::string& name : run_.names()) {
    const auto all = lines(name);
    for (std::size_t step = 0; merged && step < all.size(); ++step) {
      const Json& line = all[step];
      if (!line.contains("clock") || line["outcome"] != "averaged") continue;
      if (last_steps_.contains({name, step})) continue;
      const auto [known, is_new] = sums.emplace(line["clock"], line["sum"]);
      shared += is_new ? 0 : 1;
      CAPTURE(name);
      CAPTURE(line.dump());
      CHECK(known->second == line["sum"]);
    }
  }
  return shared;
}

TrainedStore::TrainedStore(std::size_t workers, std::size_t servers, const std::string& more,
                           const std::string& sections)
    : SmallTrainers(workers, "backend: kvstore\nkvstore: {lost_after_ms: 1000, servers: " +
                                 server_entries(servers) + ", " + more + "}\n" + sections) {
  for (std::size_t i = 0; i < servers; ++i) start_server("s" + std::to_string(i + 1));
}

void TrainedStore::start_server(const std::string& name) {
  processes_.erase(name);
  processes_.emplace(name, test::start_server(run_.file(), name));
}

std::string TrainedStore::status_check() const {
  const auto output = run_.directory() / "check.txt";
  std::filesystem::remove(output);
  ChildProcess check({DPWA_CLI, "status", "--check", run_.file()}, output);
  return check.wait(run_patience) == 0 ? "" : read_text(output);
}

}  // namespace dpwa::test

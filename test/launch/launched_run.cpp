#include "test/launch/launched_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace dpwa::test {

LaunchedRun::LaunchedRun(const std::string& settings) {
  std::ofstream out(file());
  out << settings;
  // A node that stood still for a moment of so short a run lies far from the others.
  if (test::has(settings, "backend: gossip")) out << "gossip: {firewall: {distance: warn}}\n";
}

LaunchedRun::Words LaunchedRun::train(const Words& more) const {
  Words command{DPWA_TRAIN,  "--config", file().string(), "--data",    "synthetic",
                "--threads", "1",        "--quiet",       "--run-dir", folder().string()};
  if (std::ranges::find(more, "--steps") == more.end()) {
    command.emplace_back("--steps");
    command.emplace_back("60");
  }
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

ChildProcess LaunchedRun::start(const Words& launcher, const Words& more,
                                const Words& environment) const {
  Words command = launcher;
  for (const std::string& word : train(more)) command.push_back(word);
  return {command, folder_ / "log", environment};
}

std::string LaunchedRun::log() const {
  return read_text(folder_ / "log");
}

nlohmann::json LaunchedRun::result(int rank) const {
  return nlohmann::json::parse(
      read_text(folder() / ("rank" + std::to_string(rank) + ".result.json")));
}

std::size_t LaunchedRun::metrics_lines(int rank) const {
  std::istringstream text(read_text(folder() / ("rank" + std::to_string(rank) + ".metrics.jsonl")));
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line);) ++lines;
  return lines;
}

bool LaunchedRun::all_agree(int size) const {
  for (int rank = 0; rank < size; ++rank) {
    const auto mine = result(rank)["averaged_model"];
    if (mine["participants"] != size) return false;
    if (mine["test_loss"] != result(0)["averaged_model"]["test_loss"]) return false;
  }
  return true;
}

std::string installed(const std::string& program) {
  std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = folder + "/" + program;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  std::printf("SKIPPED: %s is not installed\n", program.c_str());
  return {};
}

}  // namespace dpwa::test

#include "test/process/store_trainers.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "test/process/cluster_run.h"

namespace dpwa::test {

StoreTrainers::StoreTrainers(const ServerProcesses& servers, std::vector<std::string> names,
                             std::string optimizer, int steps)
    : servers_(servers),
      names_(std::move(names)),
      optimizer_(std::move(optimizer)),
      steps_(std::to_string(steps)) {}

void StoreTrainers::start(int pause_ms) {
  for (const std::string& name : names_) start(name, pause_ms);
}

void StoreTrainers::start(const std::string& name, int pause_ms) {
  processes_.erase(name);
  processes_.emplace(name, ChildProcess({DPWA_STORE_TRAINER, servers_.file().string(), name, steps_,
                                         optimizer_, std::to_string(pause_ms), output(name)},
                                        servers_.folder() / (name + ".log")));
}

bool StoreTrainers::finish() {
  return std::ranges::all_of(processes_,
                             [](auto& each) { return each.second.wait(run_patience) == 0; });
}

void StoreTrainers::kill_all() {
  for (auto& [name, process] : processes_) process.signal(SIGKILL);
  for (auto& [name, process] : processes_) REQUIRE(process.wait(run_patience) == -SIGKILL);
}

std::string StoreTrainers::output(const std::string& name) const {
  return (servers_.folder() / (name + ".out")).string();
}

std::vector<unsigned> StoreTrainers::numbers(const std::string& name,
                                             const std::string& word) const {
  std::ifstream file(output(name));
  std::vector<unsigned> found;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    if (line.starts_with(word))
      found.push_back(static_cast<unsigned>(std::stoul(line.substr(word.size()))));
  }
  return found;
}

std::string StoreTrainers::weights(const std::string& name) const {
  std::ifstream file(output(name) + ".weights", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string StoreTrainers::log(const std::string& name) const {
  std::ifstream file(servers_.folder() / (name + ".log"));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string StoreTrainers::logs() const {
  std::string all;
  for (const std::string& name : names_) all += name + ":\n" + log(name);
  for (const NodeEntry& server : servers_.config().kvstore.servers)
    all += server.name + ":\n" + servers_.log(server.name);
  return all;
}

}  // namespace dpwa::test

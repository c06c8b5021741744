#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/process/cluster_run.h"
#include "test/support/child_process.h"

namespace dpwa::test {

// Nodes w1, w2, ... as processes: they train a small model through the adapter of their back end,
// and write a line for each step.
class SmallTrainers {
 public:
  // `settings`: lines of the cluster file beside its nodes. `hidden`: units of the model.
  SmallTrainers(std::size_t nodes, const std::string& settings, std::size_t hidden = 24);

  void start(const std::string& name, int steps, int step_ms = 10);
  void start_all(int steps, int step_ms = 10);
  ChildProcess& at(const std::string& name) { return processes_.at(name); }
  // All at once. The last step of each belongs to it alone where no survivor has finished that
  // step: they repeat it without the dead.
  void kill(const std::vector<std::string>& names);

  std::vector<nlohmann::json> lines(const std::string& name) const;  // its steps so far
  double clock(const std::string& name) const;
  bool reaches(const std::string& name, double clock_wanted) const;
  std::string log(const std::string& name) const { return run_.log(name); }
  std::string logs() const { return run_.logs() + run_.log("s1") + run_.log("s2"); }

  // Every one of them ends with 0 and with one model. Where models are `merged`, all that were
  // averaged had the same at every clock, but for the last step of those that kill() has ended.
  // Returns how many steps had another one to be compared with.
  std::size_t check_end(const std::vector<std::string>& names, bool merged = true);

 protected:
  ClusterRun run_;
  std::map<std::string, ChildProcess> processes_;

 private:
  std::filesystem::path output(const std::string& name) const;

  const std::size_t hidden_;
  std::set<std::pair<std::string, std::size_t>> last_steps_;  // node and line, of those killed
};

// Servers and workers of backend kvstore.
class TrainedStore : public SmallTrainers {
 public:
  // Starts the servers s1, s2, ... `more`: keys of the section kvstore. `sections`: lines of the
  // cluster file beside it.
  TrainedStore(std::size_t workers, std::size_t servers, const std::string& more,
               const std::string& sections = "");

  void start_server(const std::string& name);
  // What `dpwa status --check` prints; empty when it finds no problem.
  std::string status_check() const;
};

}  // namespace dpwa::test

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/process/cluster_run.h"
#include "test/support/child_process.h"

namespace dpwa::test {

// Servers and workers of backend kvstore as processes: w1, w2, ... train a small model through the
// adapter, and write a line for each step.
class TrainedStore {
 public:
  // Starts the servers s1, s2, ... `more`: keys of the section kvstore. `sections`: lines of the
  // cluster file beside it.
  TrainedStore(std::size_t workers, std::size_t servers, const std::string& more,
               const std::string& sections = "");

  void start_server(const std::string& name);
  void start(const std::string& name, int steps, int step_ms = 10);
  void start_all(int steps);
  ChildProcess& at(const std::string& name) { return processes_.at(name); }

  std::vector<nlohmann::json> lines(const std::string& name) const;
  double clock(const std::string& name) const;
  bool reaches(const std::string& name, double clock_wanted) const;
  std::size_t count(const std::string& name, const std::string& outcome) const;
  // What `dpwa status --check` prints; empty when it finds no problem.
  std::string status_check() const;
  std::string log(const std::string& name) const { return run_.log(name); }
  std::string logs() const { return run_.logs() + run_.log("s1") + run_.log("s2"); }

  // Every worker ends with 0 and with one model. In merged types all that were averaged had the
  // same at every clock.
  void check_end(const std::vector<std::string>& workers, bool merged = true);

 private:
  std::filesystem::path output(const std::string& name) const;

  ClusterRun run_;
  std::map<std::string, ChildProcess> processes_;
};

}  // namespace dpwa::test

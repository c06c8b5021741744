#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <ios>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "test/support/child_process.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

// Waits until `condition` holds; false when it does not within run_patience. Looks rarely enough
// to leave the processors to the cluster.
bool holds_in_time(const std::function<bool()>& condition);

// The list of kvstore.servers: s1, s2, ... on free ports of this host.
std::string server_entries(std::size_t servers);

// Starts one of the file's servers of the store. Its log is added to NAME.log beside the file.
ChildProcess start_server(const std::filesystem::path& file, const std::string& name);

// A cluster of vector trainer processes w1, w2, ... on free loopback ports, in a temporary
// directory. Without a number of steps they train until finish().
class ClusterRun {
 public:
  using Arguments = std::vector<std::string>;

  // `settings`: lines of the cluster file beside its nodes.
  explicit ClusterRun(std::size_t nodes, const std::string& settings = "");

  // `environment`: NAME=VALUE, beside what this process has.
  void start(const std::string& name, const Arguments& more = {},
             const Arguments& environment = {});
  void start_all(const Arguments& more = {});
  void finish();  // tells every trainer to finish
  // Their exit codes; none: it still ran at the end of run_patience.
  std::optional<int> wait(const std::string& name);
  bool all_finished_well();  // every node of the file ended with 0
  bool finishes_well();      // finish(), and then that; what the nodes printed is shown where not

  ChildProcess& process(const std::string& name) { return processes_.at(name); }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::uint16_t>& ports() const { return ports_; }
  std::filesystem::path file() const { return directory_ / "cluster.yaml"; }
  const std::filesystem::path& directory() const { return directory_.path(); }

  // What a trainer has written so far: whole lines only.
  const std::vector<nlohmann::json>& lines(const std::string& name) const;
  nlohmann::json last_line(const std::string& name) const;                  // null: there is none
  const std::vector<nlohmann::json>& steps(const std::string& name) const;  // the steps alone
  // How many steps, from index `from` on, ended as `outcome` with `peer` (empty: any).
  std::size_t count(const std::string& name, std::size_t from, const std::string& outcome,
                    const std::string& peer = "") const;
  // Its status document; null when it does not answer.
  nlohmann::json status(const std::string& name) const;
  std::string log(const std::string& name) const;  // what it printed
  std::string logs() const;                        // of all, for a failed test

 private:
  // Of a trainer's file, as far as it was read.
  struct Written {
    std::streamoff bytes = 0;
    std::vector<nlohmann::json> lines;
    std::vector<nlohmann::json> steps;
  };
  const Written& written_by(const std::string& name) const;

  mutable std::map<std::string, Written> written_;
  TemporaryDirectory directory_;
  std::vector<std::string> names_;
  std::vector<std::uint16_t> ports_;
  std::map<std::string, ChildProcess> processes_;
};

}  // namespace dpwa::test

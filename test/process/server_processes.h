#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "test/support/child_process.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

// The servers of a store as processes, in a temporary folder.
class ServerProcesses {
 public:
  // Starts all. Snapshots: in the folder "snapshots" below its own, if the configuration names a
  // folder at all.
  explicit ServerProcesses(Config config);

  void start(const std::string& name);
  void kill_all();  // kill -9, and their ends
  ChildProcess& at(const std::string& name) { return processes_.at(name); }
  const Config& config() const { return config_; }
  void set_cluster(const std::string& name);  // for the next starts

  std::filesystem::path file() const { return folder_ / "cluster.yaml"; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path snapshots() const { return folder_ / "snapshots"; }
  // Of one server, by the end of their names; in order.
  std::vector<std::filesystem::path> snapshots(const std::string& server,
                                               const std::string& ending = ".snapshot") const;

  nlohmann::json status(const std::string& name) const;
  // The last snapshot that all servers have; 0: none, or there is no answer.
  unsigned snapshot(const std::string& name = "s1") const;
  // All are up, and every slice that workers find at one lies on another one as well.
  bool whole() const;
  std::string log(const std::string& name) const;
  std::size_t count(const std::string& name, const std::string& text) const;  // in its log

 private:
  void write_file() const;

  Config config_;
  TemporaryDirectory folder_;
  std::map<std::string, ChildProcess> processes_;
};

}  // namespace dpwa::test

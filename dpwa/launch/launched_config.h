#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/launch/introduction.h"
#include "dpwa/launch/nodes.h"

namespace dpwa {

namespace launch {

// Brings the processes of one start together and returns them as nodes, in the order of ranks.
// Blocks until all have come. Throws std::runtime_error when they do not meet. `cluster`: its name,
// the same for all.
using Meet = std::function<std::vector<NodeEntry>(const LaunchPlace& place,
                                                  const std::string& cluster, const OwnEndpoint&)>;

}  // namespace launch

// The cluster file of a program that a launcher may have started: torchrun, srun, mpirun,
// Kubernetes, or a script that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
//
// With a name (`name`, DPWA_NAME) or `join` this is load_config(). Without one, and with a
// launcher, the rank of this process is the position of its node in the file. A file without nodes
// gets one node for each process, "rank0", "rank1", ..., and these processes have to meet first.
// Used by one thread.
class LaunchedConfig {
 public:
  // Loads the file. If it lists no nodes, blocks until all processes have met. Throws ConfigError,
  // and std::runtime_error when they do not meet.
  LaunchedConfig(std::filesystem::path file, std::string name, std::vector<std::string> join,
                 const launch::Meet& meet);

  const Config& config() const { return config_; }
  // Whether the nodes are the launcher's processes, so that no file lists them.
  bool nodes_have_met() const { return has_met_; }
  // Which part of the data this process has, where its file has `seeds` and no nodes, and the
  // launcher tells; else none.
  const std::optional<launch::SeededPlace::Share>& share() const { return share_; }

  // The file as it is now, with the nodes that have met. Throws ConfigError.
  Config reload() const;

 private:
  void place(Config& config, const launch::Meet& meet);
  void place_by_seeds(Config& config, const launch::LauncherEnvironment& environment);
  void place_by_meeting(Config& config, const launch::LauncherEnvironment& environment,
                        const launch::Meet& meet);

  std::filesystem::path file_;
  std::string name_;
  std::vector<std::string> join_;
  bool has_met_ = false;
  std::optional<launch::SeededPlace::Share> share_;
  Config config_;
};

}  // namespace dpwa

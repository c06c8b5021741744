#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/observe/node_status.h"

namespace dpwa {
class Security;
}

namespace dpwa::observe {

// How the processes of a cluster are asked for their state.
struct Asking {
  Config config;                       // of load_cluster()
  std::shared_ptr<Security> security;  // of make_observer_security(); null where there is none
  std::chrono::milliseconds timeout;   // of each process
};

// Of a cluster file. `name`: what {name} in the paths of its security section stands for; empty:
// the first node whose files can be read here. Throws ConfigError.
Asking make_asking(const std::filesystem::path& file, const std::string& name,
                   std::chrono::milliseconds timeout);

// The answers of the processes of a cluster. `servers`: of backend kvstore.
struct ClusterStatus {
  std::vector<NodeStatus> nodes;
  std::vector<NodeStatus> servers;
};

// Asks the nodes of the file, in its order, or those at its seeds, then those that joined, as these
// report them; and the servers. Blocks for at most twice the timeout.
ClusterStatus ask_all(const Asking& asking);

// What dpwa status --json prints.
Json to_json(const Config& config, const ClusterStatus& found);

}  // namespace dpwa::observe

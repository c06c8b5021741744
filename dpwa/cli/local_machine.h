#pragma once

#include <set>
#include <string>

#include "dpwa/config/config.h"

namespace dpwa::cli {

// Tells which nodes of a cluster file belong to this machine, by its names and interfaces.
// The addresses are read once, on construction.
class LocalMachine {
 public:
  LocalMachine();
  // For tests: a machine of that name and those numeric addresses.
  LocalMachine(std::string name, std::set<std::string> addresses);

  // The node's host is this machine's name, a loopback address or an address of one of its
  // interfaces. `node` has been resolved (load_cluster).
  bool hosts(const NodeEntry& node) const;

 private:
  std::string name_;
  std::set<std::string> addresses_;
};

}  // namespace dpwa::cli

#pragma once

#include <cstddef>
#include <string>

namespace dpwa {

// A node and its place among the nodes of its cluster file. The start and the end of a node use it.
struct NodePlace {
  std::string name;
  std::size_t position = 0;    // number of nodes of the cluster file before this one
  std::size_t file_peers = 0;  // other nodes of the file; they come first among the peers
  bool joins = false;          // the cluster file does not name this node
};

}  // namespace dpwa

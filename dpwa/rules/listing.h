#pragma once

namespace dpwa {

// How a node belongs to its cluster.
enum class Listing {
  listed,    // the cluster file names it
  joins,     // the file names others alone
  by_seeds,  // no file lists the nodes: all are equal, in the order of names
};

}  // namespace dpwa

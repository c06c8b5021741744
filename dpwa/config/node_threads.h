#pragma once

#include <cstddef>

#include "dpwa/config/config.h"

namespace dpwa {

// How many nodes of the file, this one included, are on the host of this one, by their addresses.
std::size_t nodes_on_own_host(const Config& config);
// How many of them the file lists before this one.
std::size_t place_on_own_host(const Config& config);

// The number of threads to compute with that a node has for itself: one per core in the cluster
// file, but no more than `processors`; else the processors divided by the nodes of the file on its
// host. At least 1. More would only wait for each other: at::set_num_threads(node_threads(config)).
int node_threads(const Config& config, std::size_t processors);
int node_threads(const Config& config);  // of processor_count()

}  // namespace dpwa

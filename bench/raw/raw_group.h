#pragma once

#include <memory>
#include <string>

#include "bench/worker/group.h"
#include "bench/worker/topology.h"

namespace dpwa::bench {

// Node processes that pull by bare sockets. `mode`: in_place (blend while it arrives: the limit),
// landing (as dpwa lands), ping_pong (receive only).
std::unique_ptr<Group> make_raw_group(const Topology& topology, const std::string& mode);
std::uint64_t raw_group_memory(const Topology& topology);  // that it takes, in bytes

}  // namespace dpwa::bench

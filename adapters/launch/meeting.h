#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/launch/introduction.h"
#include "dpwa/launch/place.h"

namespace dpwa::launch {

// Brings the processes of one start together and returns them as nodes, in the order of ranks. Each
// process tells the others where it listens, through a c10d::TCPStore that the launcher or rank 0
// hosts; the store is not needed after this call. Blocks until all processes have come. Throws
// std::runtime_error when one has not come within five minutes, when two have one rank, or when
// settings differ. The sentence is the same in all processes that have met.
std::vector<NodeEntry> meet(const LaunchPlace& place, const std::string& cluster,
                            const OwnEndpoint& own);
// The same, within another time.
std::vector<NodeEntry> meet_within(std::chrono::milliseconds patience, const LaunchPlace& place,
                                   const std::string& cluster, const OwnEndpoint& own);

}  // namespace dpwa::launch

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/launch/place.h"

namespace dpwa::launch {

struct MeetingOptions {
  // The own endpoint where it is not to be found out: DPWA_HOST, DPWA_BIND, DPWA_PORT. Empty and 0:
  // the address by which this host talks to the meeting point, and a free port.
  std::string host, bind;
  std::uint16_t port = 0;
  std::string cluster;  // its name: all who meet have the same
  std::chrono::milliseconds patience = std::chrono::minutes(5);  // for the last one to come
};

// Brings the processes of one start together and returns them as nodes, in the order of ranks: each
// tells the others where it listens, through a c10d::TCPStore that the launcher or rank 0 hosts,
// and that nobody needs any more when this returns. Blocks until all have come. Throws
// std::runtime_error, in every process with the same sentence where they have met at all: for one
// that has not come, for two of one rank, for other terms.
std::vector<NodeEntry> meet(const LaunchPlace& place, const MeetingOptions& options);

}  // namespace dpwa::launch

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/launch/place.h"

namespace dpwa::launch {

struct MeetingOptions {
  // The own endpoint, if it is given (DPWA_HOST, DPWA_BIND, own_port()). Empty and 0: the
  // address that this host uses to talk to the meeting point, and a free port.
  std::string host, bind;
  std::uint16_t port = 0;
  std::string cluster;  // its name: the same for all processes that meet
  std::chrono::milliseconds patience = std::chrono::minutes(5);  // for the last one to come
};

// Brings the processes of one start together and returns them as nodes, in the order of ranks. Each
// process tells the others where it listens, through a c10d::TCPStore that the launcher or rank 0
// hosts; the store is not needed after this call. Blocks until all processes have come. Throws
// std::runtime_error when one has not come, when two have one rank, or when settings differ. The
// sentence is the same in all processes that have met.
std::vector<NodeEntry> meet(const LaunchPlace& place, const MeetingOptions& options);

}  // namespace dpwa::launch

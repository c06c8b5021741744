#pragma once

#include <cstdint>
#include <string>

#include "dpwa/launch/nodes.h"
#include "dpwa/launch/place.h"

namespace dpwa::launch {

// The endpoint of this process, where it is given (DPWA_HOST, DPWA_BIND, own_port()). Empty and 0:
// the address by which this host reaches the meeting point, and a free port.
struct OwnEndpoint {
  std::string host, bind;
  std::uint16_t port = 0;
};

OwnEndpoint own_endpoint(const LauncherEnvironment& environment, int local_rank);

// What this process says of itself to others that reach it as it reaches `meeting_point`, a numeric
// address. Throws std::runtime_error where there is no route to that.
Introduction introduction_of(const OwnEndpoint& own, const std::string& meeting_point);

}  // namespace dpwa::launch

#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace dpwa::bench {

// The kernel's data on the open TCP connections of this process.
struct OpenSockets {
  std::set<std::string> congestion_controls;
  std::uint64_t bytes_received = 0;  // since each was opened
};
OpenSockets open_sockets();

}  // namespace dpwa::bench

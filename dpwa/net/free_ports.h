#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dpwa::net {

// Distinct loopback TCP ports that nobody has at this moment, below those that the kernel gives to
// outgoing connections and to sockets bound to port 0: no other program is likely to get one. For
// clusters of one machine in tests and benchmarks. Throws std::runtime_error when none are found.
std::vector<std::uint16_t> free_ports(std::size_t count);

}  // namespace dpwa::net

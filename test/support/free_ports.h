#pragma once

#include <cstdint>
#include <vector>

namespace dpwa::test {

// Distinct loopback TCP ports that nobody has at this moment, below those that the kernel gives to
// outgoing connections and to sockets bound to port 0, so that no test run beside this one gets
// one.
std::vector<std::uint16_t> free_ports(std::size_t count);

}  // namespace dpwa::test

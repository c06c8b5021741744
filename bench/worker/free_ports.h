#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dpwa::bench {

// Distinct loopback TCP ports that nobody listens on at this moment.
std::vector<std::uint16_t> free_ports(std::size_t count);

}  // namespace dpwa::bench

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpwa {

// Where a node listens: resolved addresses in the order to try, never empty.
struct PeerAddress {
  std::string name;
  std::vector<std::string> addresses;  // numeric IPv4 or IPv6
  std::uint16_t port = 0;
};

}  // namespace dpwa

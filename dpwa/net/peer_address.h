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
  // The name whose addresses they were when it was resolved, to be resolved again; empty: none.
  std::string host = {};
};

// Of an entry of a cluster file, NodeEntry, which this layer does not know. One that was not
// resolved has an address as its host.
template <class Entry>
PeerAddress peer_address(const Entry& entry) {
  return {entry.name, entry.addresses.empty() ? std::vector{entry.host} : entry.addresses,
          entry.port, entry.host};
}

}  // namespace dpwa

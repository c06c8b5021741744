#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/net/peer_address.h"
#include "dpwa/rules/member.h"

// Nodes that no file lists find one another by seeds: addresses, or names of hosts that may have
// many, such as that of a headless service of Kubernetes.

namespace dpwa {

struct SeedPlaces {
  std::vector<PeerAddress> seeds;
  std::optional<std::string> bind;  // where this node listens, numeric; none: everywhere
};

}  // namespace dpwa

namespace dpwa::net {

// The addresses of the seeds, each by itself, at which neither this node (`self`) nor a member that
// answers is known to be. Asks for the names of hosts again, for the next call. Any thread; never
// blocks.
std::vector<PeerAddress> unmet_seeds(const SeedPlaces& places, const MemberClaim& self,
                                     const std::vector<Member>& members);

}  // namespace dpwa::net

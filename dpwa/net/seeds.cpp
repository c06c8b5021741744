#include "dpwa/net/seeds.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "dpwa/base/own_address.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/net/host_names.h"

namespace dpwa::net {
namespace {

using Place = std::pair<std::string, std::uint16_t>;

void add(std::set<Place>& places, const MemberClaim& claim) {
  for (const std::string& address : claim.addresses) places.emplace(address, claim.port);
}

}  // namespace

std::vector<PeerAddress> unmet_seeds(const SeedPlaces& places, const MemberClaim& self,
                                     const std::vector<Member>& members) {
  std::set<Place> known;
  add(known, self);
  if (places.bind) known.emplace(*places.bind, self.port);
  for (const Member& member : members) {
    const bool there = member.answers && member.status() == MemberStatus::alive;
    if (there && !member.claim.name.empty()) add(known, member.claim);
  }
  std::vector<PeerAddress> unmet;
  for (const PeerAddress& seed : places.seeds) {
    for (const std::string& address : addresses_now(seed)) {
      if (!is_numeric_host(address)) continue;  // a name that has no address yet
      const bool own = seed.port == self.port && !places.bind && is_of_this_machine(address);
      if (!own && known.emplace(address, seed.port).second)
        unmet.push_back({"", {address}, seed.port});
    }
    resolve_again(seed);
  }
  return unmet;
}

}  // namespace dpwa::net

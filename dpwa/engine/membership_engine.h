#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/membership.h"

namespace dpwa {

// The member table of a node, and the choice of the members to ask outside of the pulls, for which
// it keeps the time of the last request. Pure: time is an argument, randomness a seed. One owner,
// one thread at a time.
class MembershipEngine {
 public:
  MembershipEngine(MemberClaim self, std::vector<MemberClaim> seeds, MembershipOptions options,
                   std::uint64_t random_seed)
      : membership_(std::move(self), std::move(seeds), options), random_(random_seed) {}
  // For nodes that share their seeds.
  MembershipEngine(MemberClaim self, std::shared_ptr<const Seeds> seeds, std::size_t own_rank,
                   MembershipOptions options, std::uint64_t random_seed)
      : membership_(std::move(self), std::move(seeds), own_rank, options), random_(random_seed) {}

  // The request of an exchange with `to`, with a pull or on its own.
  MemberExchange request(const std::string& to, TimePoint now);
  // Called about twice a second. Returns at most a dozen members to ask outside of the pulls: those
  // that may have died or come back, those known only from reports, and a running one when there
  // was no pull for a while.
  std::vector<MemberClaim> tick(TimePoint now);
  // Some running members, to tell them something at once.
  std::vector<MemberClaim> some_running(std::size_t most);

  Membership& membership() { return membership_; }
  const Membership& membership() const { return membership_; }

 private:
  Membership membership_;
  Random random_;
  TimePoint requested_ = TimePoint::min();
};

// The place of a node in the order that all nodes agree on: the nodes of the cluster file by name,
// then the nodes that joined by name. A topology identifies neighbours by this rank. It stays the
// same while no node joins, leaves the table or is added to the file; a node that dies keeps its
// rank until it is forgotten. Nothing but tests calls it yet: it is there for exchange modes to
// come.
//
// `members`: the table of the node `self`, free places too; `self_is_seed`: the file names it.
std::size_t rank_of(const std::string& name, const std::vector<Member>& members,
                    const std::string& self, bool self_is_seed);

}  // namespace dpwa

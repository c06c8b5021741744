#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/membership.h"

namespace dpwa {

// The member table of a node and whom it asks beside the pulls, for which it keeps the time of its
// last request. Pure: time is an argument, randomness a seed. One owner, one thread at a time.
class MembershipEngine {
 public:
  MembershipEngine(MemberClaim self, std::vector<MemberClaim> seeds, MembershipOptions options,
                   std::uint64_t random_seed)
      : membership_(std::move(self), std::move(seeds), options), random_(random_seed) {}

  // Of an exchange with `to`, beside a pull or for itself.
  MemberExchange request(const std::string& to, TimePoint now);
  // Time passes, half a second or so at a time. Whom to ask beside the pulls, a dozen at most:
  // those that may have died or come back, those that nobody but others vouches for, and somebody
  // who runs where no pull has asked anybody for a while.
  std::vector<MemberClaim> tick(TimePoint now);
  // Some of those that run: to tell them something at once.
  std::vector<MemberClaim> some_running(std::size_t most);

  Membership& membership() { return membership_; }
  const Membership& membership() const { return membership_; }

 private:
  Membership membership_;
  Random random_;
  TimePoint requested_ = TimePoint::min();
};

// The place of a node in the order that all nodes agree on: those of the cluster file by name, then
// those that joined by name. A topology names neighbours by it. It stays while nobody joins, leaves
// the table or is added to the file; a node that dies keeps its rank until it is forgotten.
//
// `members`: the table of the node `self`, free places too; `self_is_seed`: the file names it.
std::size_t rank_of(const std::string& name, const std::vector<Member>& members,
                    const std::string& self, bool self_is_seed);

}  // namespace dpwa

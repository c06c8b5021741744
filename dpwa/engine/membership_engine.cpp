#include "dpwa/engine/membership_engine.h"

#include <chrono>
#include <set>

#include "dpwa/rules/sample.h"

namespace dpwa {
namespace {

// Without a pull for so long, news is told beside the pulls.
constexpr auto idle = std::chrono::seconds(2);

// At random, so not all of them differ: a few members are asked beside the pulls at a time.
constexpr int draws = 4;
constexpr std::size_t met_at_once = 8;

}  // namespace

MemberExchange MembershipEngine::request(const std::string& to, TimePoint now) {
  requested_ = now;
  return membership_.request(to, now);
}

std::vector<MemberClaim> MembershipEngine::tick(TimePoint now) {
  membership_.tick(now);
  std::set<PeerId> places;
  for (int draw = 0; draw < draws; ++draw) {
    if (const auto place = membership_.to_probe(random_)) places.insert(*place);
  }
  if (places.empty() && requested_ + idle < now) {
    Sample<PeerId> one(1, random_);
    for (PeerId other = 0; other < membership_.members().size(); ++other) {
      const Member& member = membership_.members()[other];
      if (member.vouched_for() && member.status() == MemberStatus::alive) one.offer(other);
    }
    places.insert(one.values().begin(), one.values().end());
  }
  for (const PeerId place : membership_.to_meet(met_at_once, now, random_)) places.insert(place);
  std::vector<MemberClaim> claims;
  for (const PeerId place : places) claims.push_back(membership_.members()[place].claim);
  return claims;
}

std::vector<MemberClaim> MembershipEngine::some_running(std::size_t most) {
  Sample<MemberClaim> some(most, random_);
  for (const Member& member : membership_.members()) {
    const bool runs = member.claim.incarnation != 0 && member.status() == MemberStatus::alive;
    if (runs && member.vouched_for()) some.offer(member.claim);
  }
  return some.values();
}

}  // namespace dpwa

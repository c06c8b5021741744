#include "dpwa/engine/membership_engine.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "dpwa/rules/sample.h"

namespace dpwa {
namespace {

// After this long without a pull, news is sent outside of the pulls.
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
    if (const auto place = membership_.any_alive(random_)) places.insert(*place);
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

std::size_t rank_of(const std::string& name, const std::vector<Member>& members,
                    const std::string& self, bool self_is_seed) {
  const auto is_seed = [&] {
    if (name == self) return self_is_seed;
    return std::ranges::any_of(
        members, [&](const Member& member) { return member.seed && member.claim.name == name; });
  };
  const bool seed = is_seed();
  const auto comes_before = [&](const std::string& other, bool other_seed) {
    return other_seed == seed ? other < name : other_seed;
  };
  const auto others = std::ranges::count_if(members, [&](const Member& member) {
    return !member.claim.name.empty() && comes_before(member.claim.name, member.seed);
  });
  return static_cast<std::size_t>(others) + (comes_before(self, self_is_seed) ? 1 : 0);
}

}  // namespace dpwa

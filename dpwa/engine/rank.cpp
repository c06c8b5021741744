#include "dpwa/engine/rank.h"

#include <algorithm>

namespace dpwa {

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

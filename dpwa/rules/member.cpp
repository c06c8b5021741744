#include "dpwa/rules/member.h"

#include <bit>
#include <tuple>

#include "dpwa/base/random.h"

namespace dpwa {

bool supersedes(const MemberClaim& claim, const MemberClaim& held) {
  const auto order = [](const MemberClaim& c) {
    return std::tuple(c.incarnation, c.refutation, c.status);
  };
  return order(claim) > order(held);
}

std::uint64_t digest_of(const MemberClaim& claim) {
  return derive_seed(hash_of(claim.name), {claim.incarnation, claim.refutation});
}

void MemberNews::add(std::size_t member) {
  remove(member);
  told_.emplace(member, 0U);
  order_.emplace(0U, member);
  DPWA_INVARIANT(told_.size() == order_.size(), "each news is told in one place of the order",
                 told_.size(), order_.size());
}

void MemberNews::remove(std::size_t member) {
  const auto told = told_.find(member);
  if (told == told_.end()) return;
  const std::size_t ordered = order_.erase({told->second, member});
  DPWA_INVARIANT(ordered == 1, "news has the place of the times that it was told", member,
                 told->second);
  told_.erase(told);
}

std::vector<std::size_t> MemberNews::take(std::size_t most, unsigned limit) {
  std::vector<std::size_t> taken;
  for (auto it = order_.begin(); it != order_.end() && taken.size() < most; ++it)
    taken.push_back(it->second);
  for (const std::size_t member : taken) {
    const unsigned times = told_.at(member) + 1;
    remove(member);
    if (times >= limit) continue;
    told_.emplace(member, times);
    order_.emplace(times, member);
  }
  return taken;
}

unsigned MemberNews::limit(std::size_t nodes) {
  return 2 * static_cast<unsigned>(std::bit_width(nodes)) + 2;
}

}  // namespace dpwa

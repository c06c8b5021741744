#include "dpwa/rules/member.h"

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

}  // namespace dpwa

#include "dpwa/core/member.h"

#include <tuple>

#include "dpwa/core/random.h"

namespace dpwa {

bool supersedes(const MemberClaim& claim, const MemberClaim& held) {
  const auto order = [](const MemberClaim& c) {
    return std::tuple(c.incarnation, c.refutation, c.status);
  };
  return order(claim) > order(held);
}

std::uint64_t digest_of(const MemberClaim& claim) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a, 64 bits
  for (const char c : claim.name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return derive_seed(hash, {claim.incarnation, claim.refutation});
}

}  // namespace dpwa

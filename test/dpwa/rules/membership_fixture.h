#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/rules/membership.h"

// A small membership table, and what its peers say.
namespace dpwa::test {

inline const TimePoint start{std::chrono::hours(10)};

inline MemberClaim claim(const std::string& name, std::uint64_t incarnation,
                         MemberStatus status = MemberStatus::alive, std::uint32_t refutation = 0) {
  const auto port = static_cast<std::uint16_t>(1 + std::hash<std::string>()(name) % 65535);
  return {name, {"10.0.0.1"}, port, incarnation, refutation, status};
}

// The own node "me" in process 100, with listed members that were never heard of.
inline Membership table(const std::vector<std::string>& listed = {"a", "b"},
                        MembershipOptions options = {}) {
  std::vector<MemberClaim> known;
  for (const auto& name : listed) known.push_back(claim(name, 0));
  return Membership(claim("me", 100), known, options);
}

// What `from` (process 1) says beside its own claim.
inline MemberExchange said_by(const std::string& from, std::vector<MemberClaim> claims = {}) {
  MemberExchange exchange;
  exchange.claims = std::move(claims);
  exchange.claims.insert(exchange.claims.begin(), claim(from, 1));
  return exchange;
}

inline MemberStatus status_of(const Membership& membership, const std::string& name) {
  const auto place = membership.find(name);
  REQUIRE(place);
  return membership.members()[*place].status();
}

inline const MemberClaim& held(const Membership& membership, const std::string& name) {
  return membership.members()[membership.find(name).value()].claim;
}

inline bool tells_of(const MemberExchange& exchange, const MemberClaim& claim) {
  return std::ranges::find(exchange.claims, claim) != exchange.claims.end();
}

}  // namespace dpwa::test

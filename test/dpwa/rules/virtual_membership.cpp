#include "test/dpwa/rules/virtual_membership.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

namespace dpwa::test {
namespace {

MemberClaim claim_of(const std::string& name, std::uint64_t incarnation) {
  MemberClaim claim;
  claim.name = name;
  const std::size_t place = std::hash<std::string>()(name);  // each at one of its own
  claim.addresses = {"10.0." + std::to_string(place / 65536 % 256) + "." +
                     std::to_string(place / 16777216 % 256)};
  claim.port = static_cast<std::uint16_t>(1 + place % 65535);
  claim.incarnation = incarnation;
  return claim;
}

}  // namespace

std::size_t VirtualMembership::start(const std::string& name,
                                     const std::vector<std::string>& seeds) {
  std::vector<MemberClaim> known;
  for (const std::string& seed : seeds) {
    if (seed != name) known.push_back(claim_of(seed, 0));
  }
  nodes_.push_back({Membership(claim_of(name, ++incarnations_), known, options_)});
  seeds_.push_back(seeds);
  indices_[name] = nodes_.size() - 1;
  return nodes_.size() - 1;
}

void VirtualMembership::restart(std::size_t node) {
  const std::string name = of(node).self().name;
  std::vector<MemberClaim> known;
  for (const std::string& seed : seeds_[node]) {
    if (seed != name) known.push_back(claim_of(seed, 0));
  }
  nodes_[node].membership = Membership(claim_of(name, ++incarnations_), known, options_);
  nodes_[node].up = true;
}

void VirtualMembership::leave(std::size_t node) {
  of(node).leave();
  for (int i = 0; i < 3; ++i) {
    const auto& to = nodes_[random_.below(nodes_.size())];
    if (to.up && to.membership.self().name != of(node).self().name)
      exchange(node, to.membership.self().name);
  }
  kill(node);
}

void VirtualMembership::exchange(std::size_t from, const std::string& to) {
  Membership& caller = of(from);
  Node& target = nodes_[indices_.at(to)];
  const bool reached = target.up && target.network == nodes_[from].network;
  if (!reached || lost()) return caller.failed(to, now_);
  if (!caller.exchange_is_due(to, now_)) {
    caller.reached(to, target.membership.self().incarnation, now_);
    return;
  }
  const MemberExchange request = caller.request(to, now_);
  const auto& self = caller.self();
  target.membership.merge(self.name, self.incarnation, request, now_);
  const MemberExchange answer = target.membership.answer(self.name, request, now_);
  largest = std::max({largest, request.claims.size(), answer.claims.size()});
  if (lost()) return caller.failed(to, now_);
  caller.reached(to, target.membership.self().incarnation, now_);
  caller.merge_answer(to, target.membership.self().incarnation, answer, now_);
}

void VirtualMembership::run_round() {
  now_ += round_;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].up) continue;
    Membership& membership = of(i);
    const auto version = membership.version();
    const std::string* chosen = nullptr;
    std::uint64_t candidates = 0;
    for (const Member& member : membership.members()) {
      const bool runs =
          member.status() == MemberStatus::alive || member.status() == MemberStatus::suspect;
      if (!member.claim.name.empty() && runs && random_.below(++candidates) == 0)
        chosen = &member.claim.name;
    }
    if (chosen) exchange(i, std::string(*chosen));
    if (const auto dead = membership.to_probe(random_))
      exchange(i, std::string(membership.members()[*dead].claim.name));
    for (const PeerId stranger : membership.to_meet(1, now_, random_))
      exchange(i, std::string(membership.members()[stranger].claim.name));
    membership.tick(now_);
    changes += membership.version() - version;
  }
}

int VirtualMembership::rounds_until(const std::function<bool()>& done, int most) {
  int rounds = 0;
  for (; rounds <= most && !done(); ++rounds) run_round();
  return rounds;
}

std::size_t VirtualMembership::holding(const std::string& name, MemberStatus status) const {
  std::size_t count = 0;
  for (const Node& node : nodes_) {
    if (!node.up) continue;
    const auto place = node.membership.find(name);
    if (place && node.membership.members()[*place].status() == status) ++count;
  }
  return count;
}

bool VirtualMembership::agreed() const {
  for (const Node& node : nodes_) {
    if (!node.up) continue;
    std::size_t alive = 0;
    for (const Member& member : node.membership.members()) {
      if (member.claim.name.empty() || member.status() != MemberStatus::alive) continue;
      const Node& other = nodes_[indices_.at(member.claim.name)];
      if (!other.up || other.network != node.network) return false;
      ++alive;
    }
    const auto reachable = std::ranges::count_if(nodes_, [&](const Node& other) {
      return other.up && other.network == node.network && &other != &node;
    });
    if (alive != static_cast<std::size_t>(reachable)) return false;
  }
  return true;
}

bool VirtualMembership::digests_equal() const {
  std::optional<std::uint64_t> digest;
  for (const Node& node : nodes_) {
    if (!node.up) continue;
    if (digest && *digest != node.membership.digest()) return false;
    digest = node.membership.digest();
  }
  return true;
}

std::size_t VirtualMembership::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [](const Node& node) { return node.up; }));
}

}  // namespace dpwa::test

#include "test/dpwa/engine/virtual_membership.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

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

VirtualMembership::Node VirtualMembership::make_node(const std::string& name,
                                                     const std::vector<std::string>& seeds,
                                                     std::uint64_t incarnation) {
  std::vector<MemberClaim> known;
  std::vector<std::string> names;
  for (const std::string& seed : seeds) {
    if (seed == name) continue;
    known.push_back(claim_of(seed, 0));
    names.push_back(seed);
  }
  PullEngineOptions pulls;
  pulls.firewall.distance = DistancePolicy::off;
  pulls.seed = random_.next();
  return {Membership(claim_of(name, incarnation), known, options_), Random(random_.next()),
          PullEngine(pulls, names)};
}

std::size_t VirtualMembership::start(const std::string& name,
                                     const std::vector<std::string>& seeds) {
  nodes_.push_back(make_node(name, seeds, ++incarnations_));
  seeds_.push_back(seeds);
  indices_[name] = nodes_.size() - 1;
  return nodes_.size() - 1;
}

void VirtualMembership::restart(std::size_t node, std::uint64_t incarnation) {
  if (incarnation == 0) incarnation = ++incarnations_;
  Node fresh = make_node(of(node).self().name, seeds_[node], incarnation);
  Node& restarted = nodes_[node];
  restarted.members = std::move(fresh.members);
  restarted.random = fresh.random;
  restarted.pulls.emplace(*fresh.pulls);
  restarted.taken_up = restarted.published = 0;
  restarted.up = true;
}

void VirtualMembership::leave(std::size_t node) {
  of(node).leave();
  for (int i = 0; i < 3; ++i) {
    const auto& to = nodes_[random_.below(nodes_.size())];
    const std::string& name = to.members.self().name;
    if (to.up && name != of(node).self().name) exchange(node, name);
  }
  kill(node);
}

bool VirtualMembership::exchange(std::size_t from, const std::string& to) {
  Node& caller = nodes_[from];
  Membership& callers = caller.members;
  Node& target = nodes_[indices_.at(to)];
  Membership& targets = target.members;
  const bool reached = target.up && target.network == caller.network;
  if (!reached || lost()) {
    callers.failed(to, now_);
    return false;
  }
  const std::uint64_t incarnation = targets.self().incarnation;
  if (!callers.exchange_is_due(to, now_)) {
    callers.reached(to, incarnation, now_);
    return true;
  }
  const MemberExchange request = caller.members.request(to, now_);
  const auto& self = callers.self();
  targets.merge(self.name, self.incarnation, request, now_);
  const MemberExchange answer = targets.answer(self.name, request, now_);
  largest = std::max({largest, request.claims.size(), answer.claims.size()});
  if (lost()) {
    callers.failed(to, now_);
    return false;
  }
  callers.reached(to, incarnation, now_);
  callers.merge_answer(to, incarnation, answer, now_);
  return true;
}

// A round of pulls within this moment: the next peer is asked where one does not answer.
void VirtualMembership::pull(std::size_t index) {
  Node& node = nodes_[index];
  const Membership& members = node.members;
  for (const PeerId place : members.changed_since(node.taken_up))
    node.pulls->take_up(place, members.members()[place]);
  node.taken_up = members.version();
  ++node.published;
  node.pulls->begin({});
  while (true) {
    const auto action = node.pulls->next(static_cast<double>(node.published), now_);
    const auto* ask = std::get_if<PullEngine::Ask>(&action);
    if (ask == nullptr) break;
    const std::string to = node.pulls->table().name(ask->peer);
    Answer answer;
    if (exchange(index, to)) {
      const Node& peer = nodes_[indices_.at(to)];
      answer.incarnation = peer.members.self().incarnation;
      answer.progress.version = ++node.published;  // each time something new
      answer.progress.clock = static_cast<double>(peer.published);
      node.pulls->landed(answer, {}, answer.progress);
    } else {
      answer.failure = PeerFailure::unreachable;
    }
    node.pulls->settle(answer, false, false, now_);
  }
  node.pulls->take_log();
}

void VirtualMembership::run_round() {
  now_ += round_;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].up) continue;
    const auto version = of(i).version();
    pull(i);
    of(i).tick(now_);
    for (const MemberClaim& member : of(i).to_ask(now_, nodes_[i].random)) {
      const bool answered = exchange(i, member.name);
      const Node& target = nodes_[indices_.at(member.name)];
      if (answered) nodes_[i].pulls->reached(member.name, target.members.self().incarnation, now_);
    }
    changes += of(i).version() - version;
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
    const auto place = node.members.find(name);
    if (place && node.members.members()[*place].status() == status) ++count;
  }
  return count;
}

bool VirtualMembership::agreed() const {
  for (const Node& node : nodes_) {
    if (!node.up) continue;
    std::size_t alive = 0;
    for (const Member& member : node.members.members()) {
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
    if (digest && *digest != node.members.digest()) return false;
    digest = node.members.digest();
  }
  return true;
}

std::size_t VirtualMembership::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [](const Node& node) { return node.up; }));
}

}  // namespace dpwa::test

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/measurers.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/rules/membership.h"

namespace dpwa::bench {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};

// Bytes that the program holds of the allocator; 0 where that is not known.
std::int64_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

std::vector<MemberClaim> make_peers(std::size_t count) {
  std::vector<MemberClaim> claims;
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) +
                         "." + std::to_string(i & 255);
    claims.push_back({"worker-" + std::to_string(i), {address}, 7000, /*incarnation=*/1 + i});
  }
  return claims;
}

// The engine of a real node on a virtual clock, and the pulls that it makes.
class VirtualNode {
 public:
  // `table`: the node has a member table too, and exchanges membership with the peers that it pulls
  // from.
  VirtualNode(std::size_t nodes, std::uint64_t pulls, bool table)
      : random_(1), pulls_({}, names_of(make_peers(nodes - 1))) {
    if (table)
      members_.emplace(MemberClaim{"worker", {}, 7000, 1}, make_peers(nodes - 1),
                       MembershipOptions{});
    for (std::uint64_t done = 0; done < pulls; ++done) {
      now_ += std::chrono::milliseconds(20);
      pull(static_cast<double>(1 + done));
    }
  }

  Json choose(double seconds) {
    const std::chrono::duration<double> length(seconds);
    const auto began = SteadyClock::now();
    std::int64_t took = 0;
    std::uint64_t choices = 0;
    while (std::chrono::nanoseconds(took) < length) {
      for (int i = 0; i < 100; ++i) pulls_.table().choose({}, now_, random_);
      choices += 100;
      took = nanoseconds_since(began);
    }
    return {{"choices", choices}, {"ns", took}};
  }

  std::uint64_t records() const { return pulls_.table().known(); }

 private:
  static std::vector<std::string> names_of(const std::vector<MemberClaim>& peers) {
    std::vector<std::string> names;
    for (const MemberClaim& peer : peers) names.push_back(peer.name);
    return names;
  }

  // Of ten pulls eight are blended, one meets a busy peer and one a peer that is down.
  void pull(double clock) {
    const RoundSpec spec;
    pulls_.begin(spec);
    const auto action = pulls_.next(clock, now_);
    if (const auto* ask = std::get_if<PullEngine::Ask>(&action)) {
      Answer answer;
      const auto lot = random_.below(10);
      if (lot == 0) {
        answer.failure = PeerFailure::unreachable;
      } else {
        answer.incarnation = 1 + ask->peer;
        if (lot == 1) answer.failure = PeerFailure::busy;
      }
      if (members_) exchange(ask->peer, lot != 0);
      Progress own;
      own.version = static_cast<std::uint64_t>(clock);
      own.clock = clock;
      answer.progress = own;
      if (!answer.failure) answer.failure = pulls_.head(own, own.lineage);
      if (!answer.failure) pulls_.landed(answer, {.squared_distance = 1, .finite = true}, own);
      pulls_.settle(answer, false, false, now_);
      pulls_.next(clock, now_ + spec.timeout);  // no other peer: the round is over
    }
    pulls_.take_log();
  }

  // The peer has no news.
  void exchange(PeerId peer, bool answers) {
    const MemberClaim theirs = members_->members()[peer].claim;
    if (!answers) return members_->failed(theirs.name, now_);
    members_->reached(theirs.name, theirs.incarnation, now_);
    if (!members_->exchange_is_due(theirs.name, now_)) return;
    members_->request(theirs.name, now_);
    MemberExchange answer;
    answer.digest = members_->digest();
    answer.claims = {theirs};
    members_->merge_answer(theirs.name, theirs.incarnation, answer, now_);
  }

  Random random_;
  PullEngine pulls_;
  std::optional<Membership> members_;
  TimePoint now_ = start;
};

// Memory that a node keeps of its peers, and the time of choosing one. Job: {"nodes", "pulls"}
// Facts: {"records", "bytes", "table_bytes"}; table_bytes: of the member table
//   -> {"do": "choose", "seconds"}  <- {"choices", "ns"}
class PeerChoice : public Measurer {
 public:
  explicit PeerChoice(const Json& job) {
    const auto count = job.at("nodes").get<std::size_t>();
    const auto pulls = job.at("pulls").get<std::uint64_t>();
    const auto before = allocated_bytes();
    node_.emplace(count, pulls, false);
    const auto between = allocated_bytes();
    const auto bytes = between - before;
    // The same pulls: the member table has no part in them.
    const VirtualNode node(count, pulls, true);
    const auto with_tables = allocated_bytes() - between;
    facts_ = {{"records", node_->records()},
              {"bytes", bytes},
              {"table_bytes", std::max<std::int64_t>(0, with_tables - bytes)}};
  }

  Json facts() const override { return facts_; }
  Json answer(const Json& command) override { return node_->choose(command.at("seconds")); }

 private:
  std::optional<VirtualNode> node_;
  Json facts_;
};

}  // namespace

std::unique_ptr<Measurer> make_peer_choice(const Json& job) {
  return std::make_unique<PeerChoice>(job);
}

}  // namespace dpwa::bench

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
#include "dpwa/engine/membership_engine.h"
#include "dpwa/engine/pull_engine.h"

namespace dpwa::bench {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};

// Bytes that the program holds of the allocator; 0 where that is not known.
std::int64_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

std::shared_ptr<const Seeds> make_seeds(std::size_t nodes) {
  std::vector<MemberClaim> claims;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto address = "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) +
                         "." + std::to_string(i & 255);
    claims.push_back({"worker-" + std::to_string(i), {address}, 7000, /*incarnation=*/1 + i});
  }
  return std::make_shared<const Seeds>(std::move(claims), start);
}

// The engines of real nodes on a virtual clock, which share one table of the cluster file.
class VirtualNodes {
 public:
  // `tables`: each node has a member table too, and exchanges membership with the peers that it
  // pulls from.
  VirtualNodes(std::size_t count, std::uint64_t pulls, bool tables) : seeds_(make_seeds(count)) {
    nodes_.reserve(count);
    for (std::size_t rank = 0; rank < count; ++rank) nodes_.push_back(make_node(rank, tables));
    for (std::uint64_t done = 0; done < pulls; ++done) {
      now_ += std::chrono::milliseconds(20);
      for (std::size_t rank = 0; rank < count; ++rank) pull(rank, static_cast<double>(1 + done));
    }
  }

  // The nodes in turn, for so long.
  Json choose(double seconds) {
    const std::chrono::duration<double> length(seconds);
    const auto began = SteadyClock::now();
    std::int64_t took = 0;
    std::uint64_t choices = 0;
    while (std::chrono::nanoseconds(took) < length) {
      for (int i = 0; i < 100; ++i, next_ = (next_ + 1) % nodes_.size()) {
        Node& node = nodes_[next_];
        node.pulls.table().choose({}, now_, node.random);
      }
      choices += 100;
      took = nanoseconds_since(began);
    }
    return {{"choices", choices}, {"ns", took}};
  }

  std::uint64_t records() const {
    std::uint64_t sum = 0;
    for (const Node& node : nodes_) sum += node.pulls.table().known();
    return sum;
  }

 private:
  struct Node {
    PullEngine pulls;
    std::optional<MembershipEngine> members;
    Random random;
  };

  Node make_node(std::size_t rank, bool tables) const {
    PullEngineOptions options;
    options.seed = derive_seed(2, {rank});
    Node node{PullEngine(options, PeerTable(PeerNames(seeds_->names(), rank), {}, {})),
              {},
              Random(derive_seed(1, {rank}))};
    const MemberClaim& self = seeds_->at(rank).claim;
    if (tables) node.members.emplace(self, seeds_, rank, MembershipOptions{}, rank);
    return node;
  }

  // Of ten pulls eight are blended, one meets a busy peer and one a peer that is down.
  void pull(std::size_t rank, double clock) {
    Node& node = nodes_[rank];
    const RoundSpec spec;
    node.pulls.begin(spec);
    const auto action = node.pulls.next(clock, now_);
    if (const auto* ask = std::get_if<PullEngine::Ask>(&action)) {
      const std::size_t peer = ask->peer < rank ? ask->peer : std::size_t{ask->peer} + 1;
      Answer answer;
      const auto lot = node.random.below(10);
      if (lot == 0) {
        answer.failure = PeerFailure::unreachable;
      } else {
        answer.incarnation = seeds_->at(peer).claim.incarnation;
        if (lot == 1) answer.failure = PeerFailure::busy;
      }
      if (node.members) exchange(rank, peer, lot != 0);
      Progress own;
      own.version = static_cast<std::uint64_t>(clock);
      own.clock = clock;
      answer.progress = own;
      if (!answer.failure) answer.failure = node.pulls.head(own, own.lineage);
      if (!answer.failure) node.pulls.landed(answer, {.squared_distance = 1, .finite = true}, own);
      node.pulls.settle(answer, false, false, now_);
      node.pulls.next(clock, now_ + spec.timeout);  // no other peer: the round is over
    }
    node.pulls.take_log();
  }

  void exchange(std::size_t rank, std::size_t peer, bool answers) {
    Membership& own = nodes_[rank].members->membership();
    Membership& other = nodes_[peer].members->membership();
    const MemberClaim& self = seeds_->at(rank).claim;
    const MemberClaim& theirs = seeds_->at(peer).claim;
    if (!answers) {
      own.failed(theirs.name, now_);
      return;
    }
    own.reached(theirs.name, theirs.incarnation, now_);
    other.heard(self.name, self.incarnation, now_);
    if (!own.exchange_is_due(theirs.name, now_)) return;
    const MemberExchange request = nodes_[rank].members->request(theirs.name, now_);
    other.merge(self.name, self.incarnation, request, now_);
    own.merge_answer(theirs.name, theirs.incarnation, other.answer(self.name, request, now_), now_);
  }

  std::shared_ptr<const Seeds> seeds_;
  std::vector<Node> nodes_;
  TimePoint now_ = start;
  std::size_t next_ = 0;
};

// Memory that nodes keep of their peers, and the time of choosing one. Job: {"nodes", "pulls"}
// Facts: {"records", "bytes", "table_bytes"}: of all nodes, their share of the common table of the
// file included; table_bytes: of the member tables
//   -> {"do": "choose", "seconds"}  <- {"choices", "ns"}
class PeerChoice : public Measurer {
 public:
  explicit PeerChoice(const Json& job) {
    const auto count = job.at("nodes").get<std::size_t>();
    const auto pulls = job.at("pulls").get<std::uint64_t>();
    const auto before = allocated_bytes();
    std::int64_t with_tables = 0;
    {
      const VirtualNodes nodes(count, pulls, true);
      with_tables = allocated_bytes() - before;
    }
    // The same pulls: the member tables have no part in them.
    const auto between = allocated_bytes();
    nodes_.emplace(count, pulls, false);
    const auto bytes = allocated_bytes() - between;
    facts_ = {{"records", nodes_->records()},
              {"bytes", bytes},
              {"table_bytes", std::max<std::int64_t>(0, with_tables - bytes)}};
  }

  Json facts() const override { return facts_; }
  Json answer(const Json& command) override { return nodes_->choose(command.at("seconds")); }

 private:
  std::optional<VirtualNodes> nodes_;
  Json facts_;
};

}  // namespace

std::unique_ptr<Measurer> make_peer_choice(const Json& job) {
  return std::make_unique<PeerChoice>(job);
}

}  // namespace dpwa::bench

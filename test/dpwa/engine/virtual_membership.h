#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/engine/pull_engine.h"
#include "dpwa/rules/membership.h"

namespace dpwa::test {

// Nodes that drive the engines of the real node on a virtual clock: in each round every node that
// runs makes one round of pulls, with which membership travels, and visits those that its member
// table wants asked. Messages are lost, and networks split, as told. The same seed gives the same
// run.
class VirtualMembership {
 public:
  struct Node {
    Membership members;
    Random random;  // of whom it asks beside its pulls
    // Always there. Optional because restart() replaces it, and an engine cannot be assigned.
    std::optional<PullEngine> pulls;
    std::uint64_t taken_up = 0;  // version of the member table that `pulls` knows
    std::uint64_t published = 0;
    bool up = true;
    int network = 0;  // reaches those of its own alone
  };

  VirtualMembership(std::uint64_t seed, MembershipOptions options, Duration round)
      : options_(options), round_(round), random_(seed) {}

  // Starts `name` with these nodes as its seeds; returns its index.
  std::size_t start(const std::string& name, const std::vector<std::string>& seeds);
  // With a table that is as new, and a higher incarnation or, under an earlier clock, this one.
  void restart(std::size_t node, std::uint64_t incarnation = 0);
  void leave(std::size_t node);  // says so to a few, and is gone
  void kill(std::size_t node) { nodes_[node].up = false; }

  void run_round();
  // Rounds until `done`, or `most` + 1.
  int rounds_until(const std::function<bool()>& done, int most);
  // How many of the running nodes hold `name` as `status`; those that never heard of it do not.
  std::size_t holding(const std::string& name, MemberStatus status) const;
  // Whether every running node holds exactly the other running nodes of its network as alive.
  bool agreed() const;
  // The same, and all held by claims alone: nothing is left to be told or refuted.
  bool digests_equal() const;
  std::size_t running() const;

  std::vector<Node>& nodes() { return nodes_; }
  Membership& of(std::size_t node) { return nodes_[node].members; }
  TimePoint now() const { return now_; }
  Random& random() { return random_; }

  double loss = 0;            // of one exchange, in either direction
  std::size_t largest = 0;    // claims in one message, so far
  std::uint64_t changes = 0;  // of statuses of running nodes, seen by others

 private:
  Node make_node(const std::string& name, const std::vector<std::string>& seeds,
                 std::uint64_t incarnation);
  void pull(std::size_t node);
  // Whether `to` answered.
  bool exchange(std::size_t from, const std::string& to);
  bool lost() { return random_.bernoulli(loss); }

  MembershipOptions options_;
  const Duration round_;
  Random random_;
  TimePoint now_{std::chrono::hours(1)};
  std::uint64_t incarnations_ = 1000;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> indices_;
  std::vector<std::vector<std::string>> seeds_;
};

}  // namespace dpwa::test

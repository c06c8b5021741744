#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/world/gossip_cluster.h"

namespace dpwa::world::testing {

// Makes a lie out of a sound snapshot. `nth`: of the lies for this victim.
using Lie = std::function<void(Snapshot& snapshot, std::uint64_t nth)>;

// What the nodes of a ByzantineCluster share.
struct ByzantineScene {
  std::size_t honest = 0;
  double optimum = 1;         // of every coordinate
  double outlier = 0;         // the last honest node trains for something that is so far from that
  Lie lie;                    // empty: the liar cannot be reached
  std::uint64_t process = 0;  // of the liar, beyond its own; 0: it does not restart
  std::uint64_t reports = 0;  // warnings about distances in the logs of the honest nodes
  std::uint64_t steps = 0;    // of the honest nodes; and for each of them:
  std::uint64_t blends = 0;
  std::uint64_t pulls_of_liar = 0;
  std::uint64_t accusations = 0;  // an honest node takes another for an offender

  std::string liar() const { return "w" + std::to_string(honest); }
};

// In lockstep with the others, but for a part of a step.
class ByzantineNode : public Conduct {
 public:
  ByzantineNode(ByzantineScene& scene, std::size_t index) : scene_(scene), index_(index) {
    begins_at_once = true;
  }

  static constexpr std::size_t dimensions = 32;

  // It does not train, reaches no other node, and no other node reaches it.
  void freeze(bool frozen) {
    stands_still = frozen;
    calls = !frozen;
  }

  Model initial(Random&) override {
    return {.values = std::vector<double>(dimensions), .origin = 1};
  }
  Duration next_step(Random&) override { return step_time; }
  void train(Model& model, Random& random) override {
    const bool is_outlier = index_ + 1 == scene_.honest;
    const double optimum = scene_.optimum + (is_outlier ? scene_.outlier : 0);
    for (double& value : model.values) value += 0.1 * (optimum - value) + random.normal(0, 0.05);
  }
  std::optional<PeerFailure> turns_away(const std::string&) override {
    return stands_still ? std::optional(PeerFailure::unreachable) : std::nullopt;
  }
  std::optional<Duration> answers(const GossipQuery& query, GossipReply& reply) override {
    if (is_honest() || !reply.snapshot) return Duration::zero();
    const auto lied = std::make_shared<Snapshot>(*reply.snapshot);
    scene_.lie(*lied, lies_[query.from]++);
    reply.snapshot = lied;
    reply.incarnation += scene_.process;
    return Duration::zero();
  }
  void settled(const std::string& peer, std::optional<PeerFailure>) override {
    scene_.pulls_of_liar += is_honest() && peer == scene_.liar() ? 1 : 0;
  }
  void logged(const std::vector<LogEntry>& lines) override {
    for (const LogEntry& line : lines) {
      const bool tells = line.weight == LogEntry::Weight::warn &&
                         line.text.find("sent parameters") != std::string::npos;
      scene_.reports += is_honest() && tells ? 1 : 0;
    }
  }
  void blended(const Arrival&) override { scene_.blends += is_honest() ? 1 : 0; }
  void stepped(GossipMember& node) override {
    if (!is_honest()) {
      scene_.process += scene_.process > 0 ? 1 : 0;
      return;
    }
    ++scene_.steps;
    const PeerTable& peers = node.engine().table();
    for (PeerId peer = 0; peer + 1 < peers.size(); ++peer)
      scene_.accusations += peers.at(peer).offended ? 1 : 0;
    if (scene_.process > 0)
      node.engine().called(scene_.liar(), peers.at(liar_id()).incarnation + 1);
  }

 private:
  bool is_honest() const { return index_ < scene_.honest; }
  PeerId liar_id() const { return static_cast<PeerId>(scene_.honest - 1); }  // for honest nodes

  ByzantineScene& scene_;
  const std::size_t index_;
  std::map<std::string, std::uint64_t> lies_;  // by victim
};

// Honest nodes that descend towards an optimum with noise and average, and a last node that answers
// with lies.
class ByzantineCluster {
 public:
  // `ledger`: the nodes keep the pair ledger.
  ByzantineCluster(std::size_t honest, DistancePolicy policy, bool ledger = false)
      : cluster_(7, options_of(policy, ledger)) {
    scene_.honest = honest;
    for (std::size_t i = 0; i <= honest; ++i) cluster_.add(scene_, i);
    cluster_.start_all();
  }

  // Every coordinate of all models; 0 at first.
  void begin_at(double value) {
    for (std::size_t i = 0; i < cluster_.size(); ++i)
      cluster_.member(i).model().values.assign(ByzantineNode::dimensions, value);
  }
  void set_optimum(double value) { scene_.optimum = value; }
  double optimum() const { return scene_.optimum; }
  void set_outlier(double offset) { scene_.outlier = offset; }
  void set_frozen(const std::set<std::size_t>& nodes) {
    for (std::size_t i = 0; i < scene_.honest; ++i) cluster_.node(i).freeze(nodes.contains(i));
  }
  // The liar calls all others in each step, as a new process.
  void set_restarting(bool restarts) { scene_.process = restarts ? 1 : 0; }

  // `lie`: the liar sends its values times this; 1 is an honest answer; at 0 it cannot be reached.
  void run(int rounds, double lie) {
    const Lie scaled = [lie](Snapshot& snapshot, std::uint64_t) {
      for (double& value : snapshot.model.values) value *= lie;
    };
    run(rounds, lie == 0 ? Lie() : scaled);
  }
  void run(int rounds, const Lie& lie) {
    scene_.lie = lie;
    cluster_.node(scene_.honest).freeze(!lie);
    cluster_.run(rounds * cluster_.node(0).step_time);
  }

  // Of the distances between the honest nodes and the optimum: the root mean square.
  double error() { return rms_to(std::vector(ByzantineNode::dimensions, scene_.optimum)); }
  double consensus_distance() { return rms_to(mean_of(scene_.honest)); }
  // Of the last honest node to the mean of the others.
  double outlier_distance() {
    return std::sqrt(squared_distance(scene_.honest - 1, mean_of(scene_.honest - 1)));
  }
  std::uint64_t reports() const { return scene_.reports; }
  // For each step of an honest node.
  double blends() const { return share(scene_.blends); }
  double pulls_of_liar() const { return share(scene_.pulls_of_liar); }
  double accusations() const { return share(scene_.accusations); }
  void count_anew() {
    scene_.steps = scene_.blends = scene_.pulls_of_liar = scene_.accusations = 0;
  }

 private:
  static GossipOptions options_of(DistancePolicy policy, bool ledger) {
    GossipOptions options;
    options.steps_to_checkpoint = 0;
    options.pulls.firewall.distance = policy;
    options.trainer.spread_pulls = false;
    options.ledger = ledger;
    return options;
  }
  double share(std::uint64_t count) const {
    return static_cast<double>(count) / static_cast<double>(scene_.steps);
  }
  std::vector<double> mean_of(std::size_t count) {
    std::vector<double> mean(ByzantineNode::dimensions);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t d = 0; d < mean.size(); ++d)
        mean[d] += cluster_.member(i).model().values[d] / static_cast<double>(count);
    }
    return mean;
  }
  double squared_distance(std::size_t node, const std::vector<double>& to) {
    double sum = 0;
    for (std::size_t d = 0; d < to.size(); ++d)
      sum += std::pow(cluster_.member(node).model().values[d] - to[d], 2);
    return sum;
  }
  double rms_to(const std::vector<double>& to) {
    double sum = 0;
    for (std::size_t i = 0; i < scene_.honest; ++i) sum += squared_distance(i, to);
    return std::sqrt(sum / static_cast<double>(scene_.honest));
  }

  ByzantineScene scene_;
  GossipCluster<ByzantineNode> cluster_;
};

}  // namespace dpwa::world::testing

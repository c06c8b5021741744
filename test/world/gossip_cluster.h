#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/world/world.h"
#include "test/world/gossip_member.h"

namespace dpwa::world::testing {

// A network without delay.
constexpr WorldOptions at_once{.delay = {}, .jitter = {}, .disk = {}};

// Nodes that gossip, for a scenario. Node is its Conduct. Names are w0, w1, ...
template <class Node>
class GossipCluster {
 public:
  // `seeds`: so many of them are of the cluster file, from the first; the others join.
  GossipCluster(std::uint64_t seed, GossipOptions options, const WorldOptions& world = at_once,
                std::size_t seeds = static_cast<std::size_t>(-1))
      : seeds_(seeds), options_(std::move(options)), world_(derive_seed(seed, {4}), world) {}

  // Another node, which does not run yet.
  template <class... Arguments>
  Node& add(Arguments&&... arguments) {
    Node& node =
        *nodes_.emplace_back(std::make_unique<Node>(std::forward<Arguments>(arguments)...));
    const std::string name = "w" + std::to_string(size() - 1);
    if (size() <= seeds_) options_.names.push_back(name);
    world_.add_machine(name, [this, &node](Environment& environment) {
      return std::make_unique<GossipMember>(environment, options_, checks_, node);
    });
    return node;
  }
  void start_all() {
    for (std::size_t i = 0; i < size(); ++i) world_.start(i);
  }
  void run(Duration time) { world_.run(time); }

  std::size_t size() const { return nodes_.size(); }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  Node& node(std::size_t index) { return *nodes_[index]; }
  // The one that runs.
  GossipMember& member(std::size_t index) const {
    return static_cast<GossipMember&>(*world_.program(index));
  }
  GossipOptions& options() { return options_; }
  World& world() { return world_; }
  const GossipChecks& checks() const { return checks_; }

 private:
  const std::size_t seeds_;
  GossipOptions options_;
  GossipChecks checks_;
  std::vector<std::unique_ptr<Node>> nodes_;
  World world_;
};

}  // namespace dpwa::world::testing

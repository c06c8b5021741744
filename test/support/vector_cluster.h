#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/host_parameters.h"

namespace dpwa::test {

// A configuration of `count` nodes w1, w2, ... on free loopback ports, for the node of index
// `self`.
Config loopback_config(const std::vector<std::uint16_t>& ports, std::size_t self);

// The model of a node that is one float32 vector, in `tensors` equal parts 'x', 'x1', 'x2', ...
// Several parts lie without gaps when each has a multiple of 16 elements.
Manifest vector_manifest(std::size_t elements, std::size_t tensors = 1);

// A float32 vector that takes part in gossip: a node without torch.
class VectorNode {
 public:
  VectorNode(Config config, std::size_t elements, float value = 0, std::size_t tensors = 1,
             TimeSource now = std::chrono::steady_clock::now);

  std::span<float> values() {
    return {reinterpret_cast<float*>(memory_.bytes().data()), elements_};
  }
  Gossip& gossip() { return *gossip_; }
  HostParameters& parameters() { return parameters_; }

 private:
  const Config config_;
  const std::size_t elements_;
  AlignedBuffer memory_;
  HostParameters parameters_;
  std::unique_ptr<Gossip> gossip_;
};

// A step whose gradients are zero.
StepReport step_of(VectorNode& node, double loss = 1.0);

// Real nodes over loopback sockets in this process, driven in lockstep.
class VectorCluster {
 public:
  // `tune` may change each node's configuration. `now`: what the nodes' judgement goes by.
  VectorCluster(std::size_t nodes, std::size_t elements,
                const std::function<void(Config&)>& tune = {}, std::size_t tensors = 1,
                const TimeSource& now = std::chrono::steady_clock::now);

  void start();  // all at once, each on a thread of its own, as processes would
  void for_all_at_once(const std::function<void(VectorNode&)>& body);
  std::size_t size() const { return nodes_.size(); }
  VectorNode& at(std::size_t index) { return *nodes_.at(index); }

 private:
  std::vector<std::unique_ptr<VectorNode>> nodes_;
};

}  // namespace dpwa::test

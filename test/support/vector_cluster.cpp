#include "test/support/vector_cluster.h"

#include <algorithm>
#include <utility>

#include "dpwa/net/free_ports.h"
#include "test/support/eventually.h"

namespace dpwa::test {

Manifest vector_manifest(std::size_t elements, std::size_t tensors) {
  std::vector<TensorSpec> specs(tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    specs[i].name = i == 0 ? "x" : "x" + std::to_string(i);
    specs[i].shape = {elements / tensors};
  }
  return Manifest(std::move(specs));
}

Config loopback_config(const std::vector<std::uint16_t>& ports, std::size_t self) {
  Config config;
  config.cluster = "test";
  for (std::size_t i = 0; i < ports.size(); ++i) {
    NodeEntry node;
    node.name = "w" + std::to_string(i + 1);
    node.port = ports[i];
    node.addresses = {"127.0.0.1"};
    node.bind_address = "127.0.0.1";
    config.nodes.push_back(std::move(node));
  }
  config.self = config.nodes.at(self).name;
  config.gossip.start_wait = std::chrono::seconds(30);
  config.gossip.finish_wait = std::chrono::seconds(30);
  config.gossip.timeout = std::chrono::seconds(10);
  return config;
}

VectorNode::VectorNode(Config config, std::size_t elements, float value, std::size_t tensors,
                       TimeSource now)
    : config_(std::move(config)),
      elements_(elements),
      memory_(vector_manifest(elements, tensors).total_bytes()),
      parameters_(vector_manifest(elements, tensors), memory_.bytes()),
      gossip_(std::make_unique<Gossip>(config_, parameters_, std::move(now))) {
  std::ranges::fill(values(), value);
}

StepReport step_of(VectorNode& node, double loss) {
  node.gossip().update_send([loss] { return loss; });
  return node.gossip().update_wait();
}

VectorCluster::VectorCluster(std::size_t nodes, std::size_t elements,
                             const std::function<void(Config&)>& tune, std::size_t tensors,
                             const TimeSource& now) {
  const auto ports = net::free_ports(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    Config config = loopback_config(ports, i);
    if (tune) tune(config);
    nodes_.push_back(std::make_unique<VectorNode>(std::move(config), elements, 0.0F, tensors, now));
  }
}

void VectorCluster::start() {
  for_all_at_once([](VectorNode& node) { node.gossip().start(); });
}

void VectorCluster::for_all_at_once(const std::function<void(VectorNode&)>& body) {
  at_once(nodes_.size(), [&](std::size_t i) { body(*nodes_[i]); });
}

}  // namespace dpwa::test

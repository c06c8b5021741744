#include "test/adapters/contract.h"

#include <torch/cuda.h>

#include <chrono>

#include "dpwa/net/free_ports.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {
namespace {

using namespace std::chrono_literals;

void null(Config& config) {
  config.backend = Backend::null;
}

void gossip(Config&) {}

void collective(Config& config) {
  config.backend = Backend::collective;
}

void collective_shrink(Config& config) {
  config.backend = Backend::collective;
  config.collective.on_lost_rank = OnLostRank::shrink;
}

void collective_gossip(Config& config) {
  config.backend = Backend::collective;
  config.collective.on_lost_rank = OnLostRank::gossip;
}

// Waits for its pulls, and blends as the original did.
void patient_gossip(Config& config) {
  config.gossip.step_budget = 50ms;
  config.gossip.blend = BlendMode::lerp;
}

}  // namespace

const std::vector<BackEnd>& back_ends() {
  static const std::vector<BackEnd> all = {
      {"null", 1, null},
      {"gossip alone", 1, gossip},
      {"gossip with 2 nodes", 2, gossip},
      {"collective alone", 1, collective},
      {"collective with 3 nodes", 3, collective},
      {"collective with 3 nodes that may shrink", 3, collective_shrink},
      {"collective with 2 nodes that may train apart", 2, collective_gossip},
      {"gossip with 4 nodes that wait for their pulls", 4, patient_gossip},
  };
  return all;
}

std::vector<at::Device> devices() {
  std::vector<at::Device> all = {at::kCPU};
  if (torch::cuda::is_available()) all.emplace_back(at::kCUDA, 0);
  return all;
}

void for_every_back_end(const std::function<void(const BackEnd&, at::Device)>& check) {
  for (const at::Device device : devices()) {
    for (const BackEnd& back_end : back_ends()) {
      INFO(back_end.name << " on " << device.str());
      check(back_end, device);
    }
  }
}

void run_nodes(const BackEnd& back_end, const std::function<void(Participant&)>& body) {
  const auto ports = net::free_ports(back_end.nodes);
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(back_end.nodes));
  at_once(back_end.nodes, [&](std::size_t i) {
    Config config = loopback_config(ports, i);
    back_end.tune(config);
    Participant node(i, config, barrier);
    body(node);
  });
}

}  // namespace dpwa::test

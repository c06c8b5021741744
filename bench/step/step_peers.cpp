#include "bench/step/step_peers.h"

#include "dpwa/net/free_ports.h"

namespace dpwa::bench {

TensorSizes tensor_sizes(std::uint64_t parameters, std::uint64_t tensors) {
  TensorSizes sizes;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::uint64_t elements = parameters / tensors + (i < parameters % tensors ? 1 : 0);
    sizes.emplace_back("p" + std::to_string(i), elements);
  }
  return sizes;
}

StepPeers::StepPeers(const TensorSizes& tensors, std::size_t peers, const NodeSettings& settings) {
  const auto ports = net::free_ports(1 + peers);
  file_ = std::make_unique<ClusterFile>(settings, ports);
  std::vector<NodeJob> jobs;
  for (std::size_t i = 1; i <= peers; ++i) {
    Json job = {{"kind", "pull"},     {"config", file_->path()}, {"name", node_name(i)},
                {"tensors", tensors}, {"blend", false},          {"peer", nullptr}};
    jobs.push_back({std::move(job), /*pulls=*/false});
  }
  group_ = std::make_unique<Group>(program_folder() / "dpwa-bench", jobs);
}

}  // namespace dpwa::bench

#include "adapters/backend.h"
#include "adapters/gossip/gossip_adapter.h"

namespace dpwa {

std::unique_ptr<Adapter> make_gossip(const Config& config, torch::nn::Module& model) {
  return std::make_unique<GossipAdapter>(config, model);
}

}  // namespace dpwa

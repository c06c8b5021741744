#include "adapters/backend.h"
#include "adapters/collective/collective_adapter.h"

namespace dpwa {

std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model) {
  return std::make_unique<CollectiveAdapter>(config, model);
}

}  // namespace dpwa

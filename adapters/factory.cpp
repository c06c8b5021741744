#include "adapters/adapter.h"
#include "adapters/backend.h"

namespace dpwa {

std::unique_ptr<Adapter> make_adapter(const Config& config, torch::nn::Module& model) {
  switch (config.backend) {
    case Backend::gossip:
      return make_gossip(config, model);
    case Backend::collective:
      return make_collective(config, model);
    case Backend::kvstore:
      return make_kvstore(config, model);
    case Backend::null:
      break;
  }
  return make_null(config, model);
}

}  // namespace dpwa

#include "adapters/adapter.h"
#include "adapters/gossip/gossip_adapter.h"
#include "adapters/null/null_adapter.h"

namespace dpwa {

std::unique_ptr<Adapter> make_adapter(const Config& config, torch::nn::Module& model) {
  switch (config.backend) {
    case Backend::gossip:
      return std::make_unique<GossipAdapter>(config, model);
    case Backend::null:
      return std::make_unique<NullAdapter>(model);
    case Backend::collective:
    case Backend::kvstore:
      break;
  }
  const std::string name = config.backend == Backend::collective ? "collective" : "kvstore";
  const std::string where = config.file.empty() ? "" : config.file.string() + ": ";
  throw ConfigError(where + "backend: '" + name +
                    "' is not available in this version; accepted: gossip, null");
}

}  // namespace dpwa

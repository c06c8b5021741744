#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>

#include "adapters/adapter.h"
#include "adapters/backend.h"
#include "adapters/common/call_order.h"
#include "adapters/common/module_tensors.h"
#include "dpwa/config/open_log.h"

namespace dpwa {

namespace {

void refuse_frozen(const torch::nn::Module& model) {
  const NamedTensors parameters = parameters_of(model);
  if (parameters.empty()) return;  // said in other words by FlatParameters
  for (const auto& [name, parameter] : parameters)
    if (parameter.requires_grad()) return;
  throw std::invalid_argument("all " + std::to_string(parameters.size()) +
                              " parameters of the model are frozen: requires_grad has to be true "
                              "for those that are to be trained before make_adapter()");
}

std::unique_ptr<Adapter> make_back_end(const Config& config, torch::nn::Module& model) {
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

}  // namespace

std::unique_ptr<Adapter> make_adapter(const Config& config, torch::nn::Module& model) {
  refuse_frozen(model);
  if (!log_is_open()) open_log(config).use();
  return with_call_order(make_back_end(config, model));
}

}  // namespace dpwa

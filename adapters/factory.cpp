#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "adapters/adapter.h"
#include "adapters/backend.h"
#include "adapters/common/graph_capture.h"
#include "adapters/common/module_tensors.h"
#include "dpwa/config/node_threads.h"
#include "dpwa/config/open_log.h"
#include "dpwa/log/log.h"

namespace dpwa {

namespace {

void refuse_frozen(const torch::nn::Module& model) {
  const NamedTensors parameters = parameters_of(model);
  if (parameters.empty()) return;  // said in other words by FlatParameters
  if (!trained_parameters(model).empty()) return;
  throw std::invalid_argument("all " + std::to_string(parameters.size()) +
                              " parameters of the model are frozen: requires_grad has to be true "
                              "for those that are to be trained before make_adapter()");
}

// More threads than the node's part of its host wait for those of its neighbours.
void warn_of_threads(const Config& config) {
  if (config.backend == Backend::null || config.nodes.empty()) return;
  const int own = node_threads(config);
  if (at::get_num_threads() <= own) return;
  log(LogLevel::warn, "adapter",
      std::to_string(at::get_num_threads()) +
          " threads compute, and this node's part of its host is " + std::to_string(own) +
          ": call at::set_num_threads(dpwa::node_threads(config)) first");
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
  auto back_end = make_back_end(config, model);
  warn_of_threads(config);
  const at::Device device = parameters_of(model).front().second.device();
  if (device.is_cpu()) return with_call_order(std::move(back_end));
  return with_call_order(std::move(back_end), [device] { return is_capturing(device); });
}

}  // namespace dpwa

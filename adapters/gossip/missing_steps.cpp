#include "adapters/gossip/missing_steps.h"

#include <string>
#include <vector>

#include "adapters/common/module_tensors.h"
#include "dpwa/log/log.h"

namespace dpwa {

MissingSteps::MissingSteps(const torch::nn::Module& model) {
  std::vector<at::Tensor> watched;
  if (const auto trained = trained_parameters(model); !trained.empty())
    watched = {trained.back().second};
  hooks_.emplace(watched, [this](std::size_t) { passed(); }, [] {});
}

void MissingSteps::passed() {
  if (++passes_ < most_passes || warned_.exchange(true)) return;
  log(LogLevel::warn, "adapter",
      std::to_string(most_passes) +
          " backward passes without a step(): unless they add up, this node trains alone; call "
          "step() of the adapter in place of that of the optimizer");
}

}  // namespace dpwa

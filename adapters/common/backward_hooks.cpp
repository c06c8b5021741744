#include "adapters/common/backward_hooks.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <stdexcept>

namespace dpwa {

BackwardHooks::BackwardHooks(const std::vector<at::Tensor>& parameters,
                             const std::function<void(std::size_t)>& added,
                             const std::function<void()>& before_adding) {
  using torch::autograd::variable_list;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // Held with the hook: the parameter refers to it only weakly. The type of the pointer differs
    // between versions of LibTorch.
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters[i]);
    const auto after =
        accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [added, i](const variable_list& outputs, const variable_list&) {
              added(i);
              return outputs;
            }));
    removals_.emplace_back([accumulator, after] { accumulator->del_post_hook(after); });
    const auto before =
        parameters[i].register_hook([before_adding](const at::Tensor&) { before_adding(); });
    removals_.emplace_back([parameter = parameters[i], before] { parameter.remove_hook(before); });
  }
}

void require_dense_gradient(const at::Tensor& parameter, const std::string& name) {
  const at::Tensor& gradient = parameter.grad();
  if (!gradient.defined() || gradient.layout() == at::kStrided) return;
  throw std::invalid_argument("the gradient of '" + name +
                              "' is sparse, which this back end does not average; accepted: dense "
                              "gradients, as of an embedding with sparse(false)");
}

BackwardHooks::~BackwardHooks() {
  for (const auto& remove : removals_) remove();
}

}  // namespace dpwa

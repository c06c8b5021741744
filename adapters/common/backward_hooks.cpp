#include "adapters/common/backward_hooks.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <stdexcept>
#include <utility>

namespace dpwa {

BackwardHooks::BackwardHooks(const std::vector<at::Tensor>& parameters,
                             const std::function<void(std::size_t)>& added,
                             const std::function<void()>& before_adding)
    : parameters_(parameters) {
  using torch::autograd::variable_list;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[i]);
    after_.push_back(
        accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [added, i](const variable_list& outputs, const variable_list&) {
              added(i);
              return outputs;
            })));
    accumulators_.push_back(std::move(accumulator));
    before_.push_back(
        parameters_[i].register_hook([before_adding](const at::Tensor&) { before_adding(); }));
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
  for (std::size_t i = 0; i < after_.size(); ++i) accumulators_[i]->del_post_hook(after_[i]);
  for (std::size_t i = 0; i < before_.size(); ++i) parameters_[i].remove_hook(before_[i]);
}

}  // namespace dpwa

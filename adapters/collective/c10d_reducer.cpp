#include "adapters/collective/c10d_reducer.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

namespace dpwa::collective {
namespace {

std::int64_t limit_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, bytes);
}

// Buckets in the order in which backward() is likely to fill them: the last parameters first.
std::vector<std::vector<std::size_t>> buckets_of(const std::vector<at::Tensor>& parameters,
                                                 const ReducerOptions& options) {
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(
      reversed, {static_cast<std::size_t>(limit_of(options.first_bucket_bytes)),
                 static_cast<std::size_t>(limit_of(options.bucket_bytes))});
  for (auto& bucket : buckets) {
    for (auto& index : bucket) index = parameters.size() - 1 - index;
  }
  return buckets;
}

}  // namespace

std::unique_ptr<c10d::Reducer> make_c10d_reducer(const std::vector<at::Tensor>& parameters,
                                                 const std::vector<std::string>& names,
                                                 const ProcessGroup& group,
                                                 const ReducerOptions& options,
                                                 std::unique_ptr<c10d::CommHookInterface> hook) {
  std::unordered_map<std::size_t, std::string> names_by_index;
  for (std::size_t i = 0; i < names.size(); ++i) names_by_index[i] = names[i];
  auto reducer = std::make_unique<c10d::Reducer>(
      parameters, buckets_of(parameters, options), group.c10d(),
      std::vector<bool>(parameters.size(), false), limit_of(options.bucket_bytes),
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false, names_by_index,
      limit_of(options.first_bucket_bytes), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<std::int64_t>{});
  reducer->register_comm_hook(std::move(hook));
  // GradientReducer writes the gradients, and scales them in the same pass.
  reducer->set_optimizer_in_backward();
  return reducer;
}

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

BackwardHooks::~BackwardHooks() {
  for (std::size_t i = 0; i < after_.size(); ++i) accumulators_[i]->del_post_hook(after_[i]);
  for (std::size_t i = 0; i < before_.size(); ++i) parameters_[i].remove_hook(before_[i]);
}

}  // namespace dpwa::collective

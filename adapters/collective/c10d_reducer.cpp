#include "adapters/collective/c10d_reducer.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

namespace dpwa::collective {
namespace {

// Of the bucket that fills first, as in PyTorch's DDP: its exchange begins early in backward().
constexpr std::uint64_t first_bucket_bytes = std::uint64_t{1} << 20;

std::int64_t limit_of(std::uint64_t bytes) {
  return static_cast<std::int64_t>(std::max<std::uint64_t>(1, bytes));
}

std::int64_t first_limit_of(const ReducerOptions& options) {
  return limit_of(std::min(first_bucket_bytes, options.bucket_bytes));
}

// Buckets in the order in which backward() is likely to fill them: the last parameters first.
std::vector<std::vector<std::size_t>> buckets_of(const std::vector<at::Tensor>& parameters,
                                                 const ReducerOptions& options) {
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(
      reversed, {static_cast<std::size_t>(first_limit_of(options)),
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
      first_limit_of(options), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<std::int64_t>{});
  reducer->register_comm_hook(std::move(hook));
  // GradientReducer writes the gradients, and scales them in the same pass.
  reducer->set_optimizer_in_backward();
  return reducer;
}

}  // namespace dpwa::collective

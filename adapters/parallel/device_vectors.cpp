#include "adapters/parallel/device_vectors.h"

#include <cstddef>

#ifdef DPWA_NCCL
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/cuda/nccl.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#endif

namespace dpwa {
namespace {

#ifdef DPWA_NCCL
bool between_gpus(const std::vector<at::Tensor>& vectors) {
  std::set<c10::DeviceIndex> gpus;
  for (const at::Tensor& vector : vectors)
    if (vector.is_cuda()) gpus.insert(vector.device().index());
  const at::Tensor& first = vectors[0];
  return gpus.size() == vectors.size() && !first.is_complex() &&
         first.numel() <= std::numeric_limits<std::int32_t>::max();  // of LibTorch's calls
}
#endif

}  // namespace

void broadcast(std::vector<at::Tensor>& vectors) {
#ifdef DPWA_NCCL
  if (between_gpus(vectors)) return torch::cuda::nccl::broadcast(vectors);
#endif
  for (std::size_t k = 1; k < vectors.size(); ++k)
    vectors[k].copy_(vectors[0], /*non_blocking=*/true);
}

void add_weighted(std::vector<at::Tensor>& vectors, const std::vector<double>& weights) {
#ifdef DPWA_NCCL
  if (between_gpus(vectors)) {
    for (std::size_t k = 0; k < vectors.size(); ++k) {
      const c10::DeviceGuard guard(vectors[k].device());
      vectors[k].mul_(weights[k]);
    }
    return torch::cuda::nccl::reduce(vectors);
  }
#endif
  vectors[0].mul_(weights[0]);
  for (std::size_t k = 1; k < vectors.size(); ++k)
    vectors[0].add_(vectors[k].to(vectors[0].device()), weights[k]);
}

}  // namespace dpwa

#include "adapters/gossip/loss_reader.h"

#include <ATen/ops/empty.h>

#include <limits>

namespace dpwa {

std::function<double()> read_later(const at::Tensor& loss, at::Device device) {
  if (!loss.defined() || loss.numel() != 1) {
    return [] { return std::numeric_limits<double>::quiet_NaN(); };
  }
  if (loss.device().is_cpu() || loss.device() != device) {
    const double value = loss.item<double>();
    return [value] { return value; };
  }
  // Queued on the training stream before the snapshot's copy: complete when that is. Cast on the
  // device: a copy that converts goes through pageable memory and waits for the device.
  at::Tensor host = at::empty({}, at::TensorOptions(at::kFloat).pinned_memory(true));
  host.copy_(loss.detach().reshape({}).to(at::kFloat), /*non_blocking=*/true);
  return [host] { return static_cast<double>(*host.const_data_ptr<float>()); };
}

}  // namespace dpwa

#include "adapters/common/loss_reader.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <limits>
#include <memory>
#include <utility>

namespace dpwa {

std::function<double()> LossReader::read(const at::Tensor& loss) {
  if (!loss.defined() || loss.numel() != 1) {
    return [] { return std::numeric_limits<double>::quiet_NaN(); };
  }
  if (loss.is_cpu() || loss.device() != device_) {
    const double value = loss.item<double>();
    return [value] { return value; };
  }
  return copy(loss, at::empty({}, at::TensorOptions(loss.scalar_type()).pinned_memory(true)));
}

double LossReader::known(const at::Tensor& loss) {
  const auto before = std::exchange(latest_, read(loss));
  return device_.is_cpu() || !before ? latest_() : before();
}

std::function<double()> LossReader::copy(const at::Tensor& loss, at::Tensor host) {
  const at::NoGradGuard no_grad;
  const c10::impl::VirtualGuardImpl device(device_.type());
  if (!side_) side_ = device.getNewStream(device_);
  const at::Tensor value = loss.detach().reshape({});
  c10::Event computed(device_.type());
  computed.record(device.getStream(device_));
  computed.block(*side_);
  const auto copied = std::make_shared<c10::Event>(device_.type());
  {
    const c10::StreamGuard on_side(*side_);
    host.copy_(value, /*non_blocking=*/true);
    copied->record(*side_);
  }
  // The training stream may drop the loss now: its memory is reused after the copy only.
  device.recordDataPtrOnStream(value.storage().data_ptr(), *side_);
  return [host = std::move(host), copied] {
    copied->synchronize();
    return host.item<double>();
  };
}

}  // namespace dpwa

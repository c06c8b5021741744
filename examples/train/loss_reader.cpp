#include "examples/train/loss_reader.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace dpwa::train {

std::optional<double> LossReader::read(const at::Tensor& loss) {
  if (loss.is_cpu()) return loss.item<double>();
  return read_late(loss.detach());
}

std::optional<double> LossReader::read_late(const at::Tensor& loss) {
  std::optional<double> previous;
  if (copied_) {
    copied_->synchronize();
    previous = host_.item<double>();
  } else {
    host_ = at::empty({}, at::TensorOptions(loss.scalar_type()).pinned_memory(true));
    copied_.emplace(loss.device().type());
  }
  host_.copy_(loss, /*non_blocking=*/true);
  const c10::impl::VirtualGuardImpl guard(loss.device().type());
  copied_->record(guard.getStream(loss.device()));
  return previous;
}

}  // namespace dpwa::train

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace dpwa::train {

// Training losses as numbers without making a GPU wait: there each comes one step late, and the
// first call gives none; on the CPU it comes at once. One owner, one thread.
class LossReader {
 public:
  std::optional<double> read(const at::Tensor& loss);

 private:
  std::optional<double> read_late(const at::Tensor& loss);

  at::Tensor host_;  // pinned; holds the loss that is under way
  std::optional<c10::Event> copied_;
};

}  // namespace dpwa::train

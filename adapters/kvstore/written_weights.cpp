#include "adapters/kvstore/written_weights.h"

namespace dpwa::kvstore {
namespace {

// Tensors of the inference mode have no count, and can be written there only.
std::uint32_t count_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version());
}

}  // namespace

void WrittenWeights::add(const at::Tensor& tensor) {
  tensors_.push_back(tensor);
  counts_.push_back(count_of(tensor));
}

void WrittenWeights::know() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) counts_[i] = count_of(tensors_[i]);
}

std::optional<std::size_t> WrittenWeights::first() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (count_of(tensors_[i]) != counts_[i]) return i;
  return std::nullopt;
}

}  // namespace dpwa::kvstore

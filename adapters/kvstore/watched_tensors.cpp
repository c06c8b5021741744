#include "adapters/kvstore/watched_tensors.h"

#include <stdexcept>

#include "adapters/common/tensor_checksum.h"

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

void SentGradients::add(const std::string& name, const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (!gradient.defined()) return;
  sent_.push_back({&name, parameter, gradient.unsafeGetTensorImpl(), gradient._version(),
                   checksum_of_sample(gradient)});
}

void SentGradients::check() const {
  for (const Sent& sent : sent_) {
    const at::Tensor& now = sent.parameter.grad();
    const bool same = now.defined() && now.unsafeGetTensorImpl() == sent.gradient &&
                      now._version() == sent.version && checksum_of_sample(now) == sent.sample;
    if (!same)
      throw std::logic_error("parameter '" + *sent.name +
                             "': its gradient was changed after it had left in backward(): call "
                             "average_gradients() first");
  }
}

}  // namespace dpwa::kvstore

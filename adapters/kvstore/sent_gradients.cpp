#include "adapters/kvstore/sent_gradients.h"

#include <stdexcept>

#include "adapters/common/tensor_checksum.h"

namespace dpwa::kvstore {

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

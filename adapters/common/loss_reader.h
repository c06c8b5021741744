#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <optional>

namespace dpwa {

// Training losses as numbers, without holding up the device that computes them. A loss on the
// device of the model is copied to pinned memory on a stream of its own, behind an event of the
// training stream, so that the training stream waits neither for the copy nor for any other copy.
// One owner, one thread.
class LossReader {
 public:
  // `device`: of the model.
  explicit LossReader(at::Device device) : device_(device) {}

  // The value of a scalar loss, to be called later, any number of times. The call waits for the
  // copy of this loss alone, which is there soon after the loss is computed. A loss in host memory
  // or on another device is read at once. An undefined tensor, or one that is no scalar, is NaN.
  std::function<double()> read(const at::Tensor& loss);

  // For what tells of a loss now and then: this one; where that would wait for a device, the one of
  // the call before, which is there by now.
  double known(const at::Tensor& loss);

  // The same as read() for a loss on the device. `host`: a scalar of the same type, where it is
  // copied to.
  std::function<double()> copy(const at::Tensor& loss, at::Tensor host);

 private:
  at::Device device_;
  std::optional<c10::Stream> side_;  // from the first copy on
  std::function<double()> latest_;   // of known()
};

}  // namespace dpwa

#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace dpwa {

// The value of a scalar loss, for use once the work queued on the current stream of `device` is
// done. A loss on that device is copied to pinned memory behind the work in flight, so that neither
// taking nor reading it synchronises; one on the host, or on another device, is read at once. An
// undefined tensor, or one that is no scalar, reads as NaN.
std::function<double()> read_later(const at::Tensor& loss, at::Device device);

}  // namespace dpwa

#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace dpwa {

// The value of a scalar loss, for use once the device's work up to now is done: on the host it is
// read at once; on a device it is copied to pinned memory behind the work in flight, so that
// neither taking nor reading it synchronises the device. An undefined tensor reads as NaN.
std::function<double()> read_later(const at::Tensor& loss);

}  // namespace dpwa

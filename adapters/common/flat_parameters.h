#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The parameters and buffers of a module, moved into one flat memory block laid out as a snapshot
// is: one run per blend rule and dtype. The module's tensors become views into it, on the same
// device and with the same identity, so publishing is one copy and blending one pass, however many
// tensors there are.
//   floating point, trainable or buffer  -> interpolate (BatchNorm statistics are blended)
//   integer buffers                      -> maximum    (num_batches_tracked)
//   requires_grad = false at this time   -> carry      (frozen: travels in full pulls only)
// A tensor registered twice (tied weights) is taken once, under its first name. The module must
// outlive this object's use and must not be moved to another device or dtype afterwards: check()
// tells.
class FlatParameters {
 public:
  // Throws std::invalid_argument that names the tensor: none at all, sparse, complex or quantised
  // ones, or more than one device.
  explicit FlatParameters(torch::nn::Module& module);

  const Manifest& manifest() const { return manifest_; }
  at::Device device() const { return memory_.device(); }
  const at::Tensor& memory() const { return memory_; }  // uint8[total_bytes]
  at::Tensor region(std::size_t index) const;           // a region of the manifest in its own dtype
  // Throws std::logic_error when the module's tensors no longer lie in the flat memory. Cost: two
  // reads.
  void check() const;

 private:
  Manifest manifest_;
  at::Tensor memory_;
  std::vector<at::Tensor> tensors_;  // the module's own, in manifest order
};

}  // namespace dpwa

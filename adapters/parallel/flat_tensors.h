#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dpwa {

// Copies of tensors of one device, in one vector for each dtype: so they travel to another device,
// and are added up, by one operation for each dtype, however many tensors there are.
class FlatTensors {
 public:
  // `like`: tensors of any device, whose shapes, dtypes and order of elements in memory the copies
  // have. In the place of an undefined tensor is -0: added, it changes no bit.
  FlatTensors(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& like,
              c10::Device device);

  // By dtype, in the same order for the same `like`.
  std::vector<at::Tensor>& vectors() { return vectors_; }

  // The copy of one of the tensors, as a view.
  at::Tensor view(std::size_t index) const;

 private:
  struct Place {
    at::Tensor like;
    std::size_t vector;
    std::int64_t offset;  // elements
  };

  std::vector<at::Tensor> vectors_;
  std::vector<Place> places_;
};

}  // namespace dpwa

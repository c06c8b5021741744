#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dpwa::kvstore {

// Tells whether a program has written tensors that only the store may write, by LibTorch's count of
// the writes of each. That count leaves out what is written under .data(). Training thread.
class WrittenWeights {
 public:
  void add(const at::Tensor& tensor);
  // What has been written so far is known.
  void know();
  // The index of a tensor that has been written since.
  std::optional<std::size_t> first() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace dpwa::kvstore

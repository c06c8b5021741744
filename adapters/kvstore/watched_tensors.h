#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

// The gradients that have left in backward(): a later change of them would not count. Some changes
// are not seen: those of single values of a large gradient by torch::nn::utils, and all of theirs
// on a device, because LibTorch does not count what is written under .data(). Training thread.
class SentGradients {
 public:
  // The gradient of this parameter leaves. The name outlives this object.
  void add(const std::string& name, const at::Tensor& parameter);
  // Throws std::logic_error that names the parameter when one was changed, or taken away, since.
  void check() const;
  void clear() { sent_.clear(); }

 private:
  struct Sent {
    const std::string* name;
    at::Tensor parameter;
    const void* gradient;
    std::int64_t version;
    std::uint32_t sample;
  };
  std::vector<Sent> sent_;
};

}  // namespace dpwa::kvstore

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include <string>
#include <vector>

#include "adapters/common/element_types.h"
#include "adapters/torch_types.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/mark.h"

namespace dpwa {

// The parameters and buffers of a module, moved into one flat memory block laid out as a snapshot
// is: one run per blend rule and dtype. The module's tensors become views into it, on the same
// device and with the same identity, so publishing is one copy and blending one pass, however many
// tensors there are.
//   floating point, trainable or buffer  -> interpolate (BatchNorm statistics are blended)
//   integer buffers                      -> maximum    (num_batches_tracked; in the final average)
//   requires_grad = false at this time   -> carry      (frozen: travels in full pulls only)
// A tensor registered twice (tied weights) is taken once, under its first name. The module must
// outlive the use of this object and must not be changed afterwards; check() detects that.
//
// Tensors in channels_last order keep it, all others lie contiguously. The elements of the former
// then lie in another order in a snapshot: the manifest has a mark that says so, and nodes whose
// tensors differ in it exchange nothing.
class FlatParameters {
 public:
  // Throws std::invalid_argument that names the tensor, and leaves the module as it was: none at
  // all, sparse, complex or quantised ones, more than one device, or two over the same memory.
  // `allocate`: of host memory, zeroed, where the module is there.
  explicit FlatParameters(
      torch::nn::Module& module,
      const BufferAllocator& allocate = [](std::size_t bytes) { return AlignedBuffer(bytes); });

  const Manifest& manifest() const { return manifest_; }
  void mark(const Mark& mark) { manifest_ = with_mark(manifest_, mark); }
  at::Device device() const { return memory_.device(); }
  const at::Tensor& memory() const { return memory_; }  // uint8[total_bytes]
  // A region of the manifest in its own dtype. The module's tensors are views of the regions, each
  // a storage of its own inside memory(): torch::save writes a region once, under its dtype.
  const at::Tensor& region(std::size_t index) const { return regions_.at(index); }
  // Throws std::logic_error that names the tensor when the module is no longer as it was: a tensor
  // lies elsewhere, as after to() or a load, has another dtype or shape, or is no longer frozen; or
  // the lists of parameters and buffers have changed. A tensor that was trained may be frozen.
  // Reads some fields of each tensor.
  void check() const;

 private:
  at::Tensor view_of(std::size_t index, at::IntArrayRef shape) const;
  void mark_formats(const std::vector<std::string>& names);
  const char* change_of(std::size_t index, const void* place) const;
  bool lists_same_tensors() const;
  [[noreturn]] void refuse_lists() const;

  const torch::nn::Module& module_;
  Manifest manifest_;
  at::Tensor memory_;
  std::vector<at::Tensor> regions_;
  std::vector<at::Tensor> tensors_;  // the module's own, in manifest order
  std::vector<bool> trains_;         // whether each was not frozen
  std::vector<at::MemoryFormat> formats_;
  std::vector<const void*> identities_;  // of all that is registered, by for_each_registered()
};

}  // namespace dpwa

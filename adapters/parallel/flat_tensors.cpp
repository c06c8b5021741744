#include "adapters/parallel/flat_tensors.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>

#include <algorithm>

namespace dpwa {
namespace {

// Dense ones keep the order of their elements in memory, such as channels_last.
std::vector<std::int64_t> strides_of(const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) return like.strides().vec();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(like.dim()));
  std::int64_t stride = 1;
  for (std::int64_t i = like.dim(); i-- > 0; stride *= std::max<std::int64_t>(like.size(i), 1))
    strides[static_cast<std::size_t>(i)] = stride;
  return strides;
}

at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined())
    return at::full({like.numel()}, -0.0,
                    at::TensorOptions().dtype(like.scalar_type()).device(device));
  const auto strides = strides_of(like);
  if (tensor.strides().equals(strides)) return tensor.as_strided({tensor.numel()}, {1});
  at::Tensor ordered = at::empty_strided(like.sizes(), strides, tensor.options());
  return ordered.copy_(tensor).as_strided({tensor.numel()}, {1});
}

}  // namespace

FlatTensors::FlatTensors(const std::vector<at::Tensor>& tensors,
                         const std::vector<at::Tensor>& like, c10::Device device) {
  struct Run {
    at::ScalarType type;
    std::int64_t elements = 0;
    std::vector<at::Tensor> parts = {};
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < like.size(); ++i) {
    auto run = std::ranges::find(runs, like[i].scalar_type(), &Run::type);
    if (run == runs.end()) run = runs.insert(run, Run{like[i].scalar_type()});
    places_.push_back({like[i], static_cast<std::size_t>(run - runs.begin()), run->elements});
    run->elements += like[i].numel();
    run->parts.push_back(in_order_of(like[i], tensors[i], device));
  }
  for (const Run& run : runs) vectors_.push_back(at::cat(run.parts));
}

at::Tensor FlatTensors::view(std::size_t index) const {
  const Place& place = places_.at(index);
  return vectors_[place.vector].as_strided(place.like.sizes(), strides_of(place.like),
                                           place.offset);
}

}  // namespace dpwa

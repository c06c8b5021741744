#include "adapters/common/flat_parameters.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "adapters/common/dtype.h"
#include "adapters/common/module_tensors.h"

namespace dpwa {
namespace {

// Zeroed, since the gaps between tensors travel as well; device memory from the device's own
// allocator.
at::Tensor allocate(std::uint64_t bytes, at::Device device, const BufferAllocator& host) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (!device.is_cpu()) return at::zeros({size}, at::TensorOptions(at::kByte).device(device));
  auto buffer = std::make_shared<AlignedBuffer>(host(bytes));
  void* data = buffer->bytes().data();
  return at::from_blob(data, {size}, [buffer](void*) {}, at::TensorOptions(at::kByte));
}

// A region as a storage of its own, so that torch serialises it under its own dtype.
at::Tensor carve(const at::Tensor& memory, const Region& region) {
  auto* data = static_cast<std::byte*>(memory.mutable_data_ptr()) + region.offset;
  const auto options = at::TensorOptions(to_scalar_type(region.dtype)).device(memory.device());
  return at::from_blob(
      data, {static_cast<std::int64_t>(region.bytes / size_of(region.dtype))}, [memory](void*) {},
      options, memory.device());
}

}  // namespace

FlatParameters::FlatParameters(torch::nn::Module& module, const BufferAllocator& host) {
  const c10::InferenceMode no_inference(false);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto all = tensors_of(module);
  manifest_ = Manifest(describe(all));
  memory_ = allocate(manifest_.total_bytes(), all.front().tensor.device(), host);
  for (const Region& region : manifest_.regions()) regions_.push_back(carve(memory_, region));
  for (std::size_t i = 0; i < all.size(); ++i) {
    at::Tensor view = view_of(i, all[i].tensor.sizes());
    view.copy_(all[i].tensor);
    at::Tensor tensor = all[i].tensor;
    tensor.set_data(view);
    tensors_.push_back(std::move(tensor));
  }
}

at::Tensor FlatParameters::view_of(std::size_t index, at::IntArrayRef shape) const {
  const TensorSpec& spec = manifest_.tensors()[index];
  const auto& regions = manifest_.regions();
  const auto region = std::ranges::find_if(regions, [&spec](const Region& candidate) {
    return candidate.dtype == spec.dtype && candidate.rule == spec.rule;
  });
  const std::uint64_t begin = (manifest_.offset_of(index) - region->offset) / size_of(spec.dtype);
  return regions_[static_cast<std::size_t>(region - regions.begin())]
      .narrow(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(spec.elements()))
      .view(shape);
}

void FlatParameters::check() const {
  const auto* base = static_cast<const std::byte*>(memory_.const_data_ptr());
  const auto in_place = [&](std::size_t i) {
    return tensors_[i].numel() == 0 ||
           tensors_[i].const_data_ptr() == base + manifest_.offset_of(i);
  };
  for (const std::size_t i : {std::size_t{0}, tensors_.size() - 1}) {
    if (in_place(i)) continue;
    throw std::logic_error("the model's tensor '" + manifest_.tensors()[i].name +
                           "' was moved after make_adapter(): call make_adapter() once the model "
                           "has its device and dtype and its checkpoint is loaded");
  }
}

}  // namespace dpwa

#include "adapters/common/flat_parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

#include <memory>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "adapters/common/dtype.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {
namespace {

struct Named {
  std::string name;
  at::Tensor tensor;
  bool is_parameter;
};

// Parameters, then buffers, in the order of registration, each tensor once.
std::vector<Named> collect(const torch::nn::Module& module) {
  std::vector<Named> all;
  std::unordered_set<const void*> seen;
  const auto add = [&](const auto& items, bool is_parameter) {
    for (const auto& item : items) {
      if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second)
        continue;
      all.push_back({item.key(), item.value(), is_parameter});
    }
  };
  add(module.named_parameters(), true);
  add(module.named_buffers(), false);
  return all;
}

TensorSpec describe(const Named& named) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("tensor '" + named.name + "' cannot be shared: " + why);
  };
  if (named.tensor.layout() != at::kStrided) refuse("it is not dense");
  const auto dtype = to_dtype(named.tensor.scalar_type());
  if (!dtype) refuse(std::string("its dtype is ") + c10::toString(named.tensor.scalar_type()));
  TensorSpec spec;
  spec.name = named.name;
  spec.dtype = *dtype;
  const bool frozen = named.is_parameter && !named.tensor.requires_grad();
  if (frozen || spec.dtype == DType::boolean) {
    spec.rule = BlendRule::carry;
  } else {
    spec.rule = is_floating_point(spec.dtype) ? BlendRule::interpolate : BlendRule::maximum;
  }
  for (const auto size : named.tensor.sizes())
    spec.shape.push_back(static_cast<std::uint64_t>(size));
  return spec;
}

// Host memory on huge pages; device memory from the device's own allocator.
at::Tensor allocate(std::uint64_t bytes, at::Device device) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (!device.is_cpu()) return at::empty({size}, at::TensorOptions(at::kByte).device(device));
  auto buffer = std::make_shared<AlignedBuffer>(bytes);
  void* data = buffer->bytes().data();
  return at::from_blob(data, {size}, [buffer](void*) {}, at::TensorOptions(at::kByte));
}

}  // namespace

FlatParameters::FlatParameters(torch::nn::Module& module) {
  const c10::InferenceMode no_inference(false);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto all = collect(module);
  if (all.empty()) throw std::invalid_argument("the model has no parameters to share");
  const at::Device device = all.front().tensor.device();
  std::vector<TensorSpec> specs;
  for (const Named& named : all) {
    if (named.tensor.device() != device) {
      throw std::invalid_argument("tensor '" + named.name + "' is on " +
                                  named.tensor.device().str() + ", others on " + device.str() +
                                  ": a model must be on one device");
    }
    specs.push_back(describe(named));
  }
  manifest_ = Manifest(std::move(specs));
  memory_ = allocate(manifest_.total_bytes(), device);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TensorSpec& spec = manifest_.tensors()[i];
    at::Tensor view = memory_
                          .narrow(0, static_cast<std::int64_t>(manifest_.offset_of(i)),
                                  static_cast<std::int64_t>(spec.bytes()))
                          .view(to_scalar_type(spec.dtype))
                          .view(all[i].tensor.sizes());
    view.copy_(all[i].tensor);
    at::Tensor tensor = all[i].tensor;
    tensor.set_data(view);
    tensors_.push_back(std::move(tensor));
  }
}

at::Tensor FlatParameters::region(std::size_t index) const {
  const Region& region = manifest_.regions().at(index);
  return memory_
      .narrow(0, static_cast<std::int64_t>(region.offset), static_cast<std::int64_t>(region.bytes))
      .view(to_scalar_type(region.dtype));
}

void FlatParameters::check() const {
  const auto* base = static_cast<const std::byte*>(memory_.const_data_ptr());
  for (const std::size_t i : {std::size_t{0}, tensors_.size() - 1}) {
    if (tensors_[i].const_data_ptr() == base + manifest_.offset_of(i)) continue;
    throw std::logic_error(
        "the model's tensor '" + manifest_.tensors()[i].name +
        "' was moved after make_adapter(): call make_adapter() once the model is on its device");
  }
}

}  // namespace dpwa

#include "adapters/common/module_tensors.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "adapters/common/dtype.h"

namespace dpwa {
namespace {

TensorSpec describe_one(const ModuleTensor& named) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("tensor '" + named.name + "' cannot be shared: " + why);
  };
  if (named.tensor.layout() != at::kStrided) refuse("it is not dense");
  if (named.tensor.is_meta()) refuse("it has no memory yet");
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

// Two tensors over one piece of memory would come apart in silence.
void refuse_shared_memory(const std::vector<ModuleTensor>& all) {
  struct Extent {
    const std::byte* begin;
    const std::byte* end;
    const std::string* name;
  };
  std::vector<Extent> extents;
  for (const auto& [name, tensor, is_parameter] : all) {
    if (tensor.numel() == 0) continue;
    const auto* begin = static_cast<const std::byte*>(tensor.const_data_ptr());
    const auto bytes =
        at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
    extents.push_back({begin, begin + bytes, &name});
  }
  std::ranges::stable_sort(extents, {}, &Extent::begin);
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin >= extents[i - 1].end) continue;
    throw std::invalid_argument(
        "tensor '" + *extents[i].name + "' cannot be shared: its memory is also that of '" +
        *extents[i - 1].name + "'; to tie parameters, register one tensor in both places");
  }
}

}  // namespace

std::vector<ModuleTensor> tensors_of(const torch::nn::Module& module) {
  std::unordered_set<const void*> parameters;
  for (const auto& item : module.named_parameters())
    parameters.insert(item.value().unsafeGetTensorImpl());
  std::vector<ModuleTensor> all;
  std::unordered_set<const void*> seen;
  const auto add = [&](const std::string& owner, const auto& items) {
    for (const auto& item : items) {
      const void* identity = item.value().unsafeGetTensorImpl();
      if (!item.value().defined() || !seen.insert(identity).second) continue;
      const std::string name = owner.empty() ? item.key() : owner + '.' + item.key();
      all.push_back({name, item.value(), parameters.contains(identity)});
    }
  };
  const auto add_own = [&](const std::string& name, const torch::nn::Module& owner) {
    add(name, owner.named_parameters(/*recurse=*/false));
    add(name, owner.named_buffers(/*recurse=*/false));
  };
  add_own("", module);
  // Of the children alone: a module on the stack has no shared pointer to name itself by.
  for (const auto& child : module.named_modules("", /*include_self=*/false))
    add_own(child.key(), *child.value());
  return all;
}

std::vector<TensorSpec> describe(const std::vector<ModuleTensor>& tensors) {
  if (tensors.empty()) throw std::invalid_argument("the model has no parameters to share");
  const at::Device device = tensors.front().tensor.device();
  std::vector<TensorSpec> specs;
  for (const ModuleTensor& named : tensors) {
    if (named.tensor.device() != device) {
      throw std::invalid_argument("tensor '" + named.name + "' is on " +
                                  named.tensor.device().str() + ", others on " + device.str() +
                                  ": a model must be on one device");
    }
    specs.push_back(describe_one(named));
  }
  refuse_shared_memory(tensors);
  return specs;
}

}  // namespace dpwa

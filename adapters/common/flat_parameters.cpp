#include "adapters/common/flat_parameters.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dpwa/snapshot/manifest.h"

namespace dpwa {
namespace {

constexpr auto after_make_adapter =
    " after make_adapter(): call make_adapter() once the model has its layers, device and dtype, "
    "what is not to be trained is frozen, and its checkpoint is loaded";

struct ModuleTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
};

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

// Two tensors that share memory would silently become separate.
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

// The parameters and buffers of a module, one (sub)module after the other in the order of
// registration: first its parameters, then its buffers, so that the statistics of a BatchNorm lie
// with its weights. A tensor registered twice (tied weights) is listed once, under its first name;
// undefined ones are left out.
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
  // Only the children: a module on the stack has no shared pointer to itself.
  for (const auto& child : module.named_modules("", /*include_self=*/false))
    add_own(child.key(), *child.value());
  return all;
}

// Access without a copy of the list, whose making costs ten times as much as reading it.
struct OwnParameters : torch::nn::Module {
  static const auto& of(const torch::nn::Module& module) {
    return module.*(&OwnParameters::parameters_);
  }
};

// All registered tensors, undefined ones and those of shared modules each time.
template <class Visit>
void for_each_registered(const torch::nn::Module& module, const Visit& visit) {
  for (const auto& item : OwnParameters::of(module)) visit(item.value());
  for (const auto& item : module.named_buffers(/*recurse=*/false)) visit(item.value());
  for (const auto& child : module.children()) for_each_registered(*child, visit);
}

// The manifest's entry for each. Throws std::invalid_argument that names the tensor: none at all;
// sparse, complex, quantised or without memory; not on one device; or two over the same memory.
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

// Zeroed, since the gaps between tensors travel as well; device memory from the device's own
// allocator.
at::Tensor allocate(std::uint64_t bytes, at::Device device, const BufferAllocator& host) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (!device.is_cpu()) return at::zeros({size}, at::TensorOptions(at::kByte).device(device));
  auto buffer = std::make_shared<AlignedBuffer>(host(bytes));
  void* data = buffer->bytes().data();
  return at::from_blob(data, {size}, [buffer](void*) {}, at::TensorOptions(at::kByte));
}

// Whether the elements of a tensor of this shape lie in another order than if it was contiguous.
bool reorders(at::IntArrayRef shape, at::MemoryFormat format) {
  if (format == at::MemoryFormat::Contiguous) return false;
  const bool one_place = std::ranges::all_of(shape.slice(2), [](auto size) { return size == 1; });
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  return !empty && !one_place && shape[1] != 1;
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

FlatParameters::FlatParameters(torch::nn::Module& module, const BufferAllocator& host)
    : module_(module) {
  const c10::InferenceMode no_inference(false);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto all = tensors_of(module);
  manifest_ = Manifest(describe(all));
  std::vector<std::string> reordered;
  for (const ModuleTensor& each : all) {
    formats_.push_back(each.tensor.suggest_memory_format());
    if (reorders(each.tensor.sizes(), formats_.back())) reordered.push_back(each.name);
  }
  mark_formats(reordered);
  memory_ = allocate(manifest_.total_bytes(), all.front().tensor.device(), host);
  for (const Region& region : manifest_.regions()) regions_.push_back(carve(memory_, region));
  for (std::size_t i = 0; i < all.size(); ++i) {
    at::Tensor view = view_of(i, all[i].tensor.sizes());
    view.copy_(all[i].tensor);
    at::Tensor tensor = all[i].tensor;
    tensor.set_data(view);
    trains_.push_back(tensor.requires_grad());
    tensors_.push_back(std::move(tensor));
  }
  for_each_registered(module, [this](const at::Tensor& tensor) {
    identities_.push_back(tensor.unsafeGetTensorImpl());
  });
}

// One mark for all, so that the names of a large model fit.
void FlatParameters::mark_formats(const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  mark({"channels_last", std::to_string(names.size()) + " tensors: " + list});
}

at::Tensor FlatParameters::view_of(std::size_t index, at::IntArrayRef shape) const {
  const TensorSpec& spec = manifest_.tensors()[index];
  const auto& regions = manifest_.regions();
  const auto region = std::ranges::find_if(regions, [&spec](const Region& candidate) {
    return candidate.dtype == spec.dtype && candidate.rule == spec.rule;
  });
  const std::uint64_t begin = (manifest_.offset_of(index) - region->offset) / size_of(spec.dtype);
  const at::Tensor elements = regions_[static_cast<std::size_t>(region - regions.begin())].narrow(
      0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(spec.elements()));
  if (formats_[index] == at::MemoryFormat::Contiguous) return elements.view(shape);
  std::vector<std::int64_t> channels_last = shape.vec();
  std::ranges::rotate(channels_last.begin() + 1, channels_last.begin() + 2, channels_last.end());
  return elements.view(channels_last).movedim(-1, 1);
}

// Null: none. `place`: where it was put.
const char* FlatParameters::change_of(std::size_t index, const void* place) const {
  const at::Tensor& tensor = tensors_[index];
  const TensorSpec& spec = manifest_.tensors()[index];
  const bool dense = tensor.layout() == at::kStrided;
  if (!dense || (tensor.numel() != 0 && tensor.const_data_ptr() != place)) return "was moved";
  if (tensor.scalar_type() != to_scalar_type(spec.dtype)) return "got another dtype";
  const bool same_shape = std::ranges::equal(tensor.sizes(), spec.shape, [](auto a, auto b) {
    return static_cast<std::uint64_t>(a) == b;
  });
  if (!same_shape || !tensor.is_contiguous(formats_[index])) return "got another shape";
  return tensor.requires_grad() && !trains_[index] ? "is no longer frozen" : nullptr;
}

bool FlatParameters::lists_same_tensors() const {
  std::size_t count = 0;
  bool same = true;
  for_each_registered(module_, [&](const at::Tensor& tensor) {
    same = same && count < identities_.size() && identities_[count] == tensor.unsafeGetTensorImpl();
    ++count;
  });
  return same && count == identities_.size();
}

void FlatParameters::refuse_lists() const {
  std::string words = "the model's list of parameters and buffers has changed";
  const auto now = tensors_of(module_);
  const auto has = [](const auto& all, const at::Tensor& tensor) {
    return std::ranges::any_of(all, [&](const at::Tensor& each) { return each.is_same(tensor); });
  };
  std::vector<at::Tensor> listed;
  for (const ModuleTensor& each : now) {
    listed.push_back(each.tensor);
    if (!has(tensors_, each.tensor)) words = "the model has a new tensor '" + each.name + "'";
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!has(listed, tensors_[i]))
      words = "the model has lost its tensor '" + manifest_.tensors()[i].name + "'";
  }
  throw std::logic_error(words + after_make_adapter);
}

void FlatParameters::check() const {
  const auto* base = static_cast<const std::byte*>(memory_.const_data_ptr());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const char* change = change_of(i, base + manifest_.offset_of(i));
    if (change == nullptr) continue;
    throw std::logic_error("the model's tensor '" + manifest_.tensors()[i].name + "' " + change +
                           after_make_adapter);
  }
  if (!lists_same_tensors()) refuse_lists();
}

}  // namespace dpwa

#include "adapters/collective/engine/tensor_form.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "adapters/common/element_types.h"

namespace dpwa::collective {

namespace {

constexpr std::string_view on = " on ";

// The current device of the kind that is named after a form, or the CPU.
std::optional<at::Device> device_in(const std::string& text) {
  if (text.empty()) return at::kCPU;
  if (!text.starts_with(on)) return std::nullopt;
  try {
    const at::Device kind(text.substr(on.size()));
    return c10::impl::VirtualGuardImpl(kind.type()).getDevice();
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string type_name(at::ScalarType type) {
  return std::string(c10::getDtypeNames(type).first);
}

std::string form_of(const at::Tensor& tensor, bool any_rows) {
  if (!tensor.defined()) return "no tensor";
  std::string text = type_name(tensor.scalar_type()) + " [";
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis) {
    if (axis > 0) text += ", ";
    text += any_rows && axis == 0 ? "*" : std::to_string(tensor.size(axis));
  }
  text += "]";
  if (tensor.layout() != at::kStrided) text += " (not dense)";
  if (!tensor.is_cpu()) text += std::string(on) + c10::DeviceTypeName(tensor.device().type(), true);
  return text;
}

at::Tensor zeros_of(const std::string& form) {
  const auto open = form.find(" [");
  const auto close = form.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  const auto device = device_in(form.substr(close + 1));
  if (!device) return {};
  const std::string type = form.substr(0, open);
  std::vector<std::int64_t> shape;
  std::string axes = form.substr(open + 2, close - open - 2);
  std::replace(axes.begin(), axes.end(), ',', ' ');
  std::istringstream words(axes);
  for (std::string word; words >> word;) shape.push_back(word == "*" ? 0 : std::stoll(word));
  for (const auto& [known, own] : element_types)
    if (type_name(known) == type) return at::zeros(shape, at::TensorOptions(known).device(*device));
  return {};
}

at::Tensor bytes_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return at::empty({0}, tensor.options().dtype(at::kByte));
  return tensor.view({-1}).view(at::kByte);
}

at::ScalarType working_type(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
    case at::kBFloat16:
      return at::kFloat;
    case at::kShort:
      return at::kInt;
    case at::kBool:
      return at::kByte;
    default:
      return type;
  }
}

std::string reduction_problem(const at::Tensor& tensor, const ReduceOptions& options) {
  if (!tensor.defined()) return "there is no tensor";
  if (tensor.layout() != at::kStrided) return "the tensor is not dense";
  const auto type = tensor.scalar_type();
  const bool floating = at::isFloatingType(type);
  if (!floating && !at::isIntegralType(type, /*includeBool=*/true)) {
    return type_name(type) + " cannot be reduced";
  }
  const bool adds = options.reduction == Reduction::sum || options.reduction == Reduction::average;
  if (type == at::kBool && adds) return "bool cannot be added; use min, max or an integer type";
  if (floating) return {};
  if (options.reduction == Reduction::average) {
    return type_name(type) + " cannot be averaged; use sum or a floating-point type";
  }
  if (options.prescale != 1 || options.postscale != 1) return type_name(type) + " cannot be scaled";
  return {};
}

}  // namespace dpwa::collective

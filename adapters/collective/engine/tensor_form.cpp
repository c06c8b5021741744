#include "adapters/collective/engine/tensor_form.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace dpwa::collective {

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
  if (!tensor.is_cpu()) text += " on " + c10::DeviceTypeName(tensor.device().type(), true);
  return text;
}

at::Tensor zeros_of(const std::string& form) {
  const auto open = form.find(" [");
  if (open == std::string::npos || form.back() != ']') return {};
  const std::string type = form.substr(0, open);
  std::vector<std::int64_t> shape;
  std::string axes = form.substr(open + 2);
  axes.pop_back();
  std::replace(axes.begin(), axes.end(), ',', ' ');
  std::istringstream words(axes);
  for (std::string word; words >> word;) shape.push_back(word == "*" ? 0 : std::stoll(word));
  for (const auto known : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte, at::kChar,
                           at::kShort, at::kInt, at::kLong, at::kBool})
    if (type_name(known) == type) return at::zeros(shape, known);
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

}  // namespace dpwa::collective

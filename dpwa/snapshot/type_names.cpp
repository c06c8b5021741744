#include "dpwa/snapshot/type_names.h"

#include <stdexcept>

namespace dpwa {

DType dtype_named(const std::string& name) {
  for (int value = 1; value <= static_cast<int>(DType::boolean); ++value)
    if (name_of(static_cast<DType>(value)) == name) return static_cast<DType>(value);
  throw std::invalid_argument("tensors of type " + name + " cannot be shared");
}

BlendRule rule_named(const std::string& name) {
  if (name == "interpolate") return BlendRule::interpolate;
  if (name == "maximum") return BlendRule::maximum;
  if (name == "carry") return BlendRule::carry;
  throw std::invalid_argument("rule '" + name + "'; accepted: interpolate, maximum, carry");
}

}  // namespace dpwa

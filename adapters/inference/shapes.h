#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace dpwa {

// "float32[235, 1]"; "nothing" for an undefined tensor.
std::string words_of_shape(const at::Tensor& tensor);

}  // namespace dpwa

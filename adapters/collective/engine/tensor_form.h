#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "dpwa/collective/reduce_options.h"

namespace dpwa::collective {

// "float32", "bfloat16", ...: the names that users of torch know.
std::string type_name(at::ScalarType type);

// "float32 [3, 4]"; with `any_rows` "float32 [*, 4]". A tensor that is not dense says so.
std::string form_of(const at::Tensor& tensor, bool any_rows = false);

// A tensor of zeros of such a form, on the current device of its kind; "*" becomes zero rows.
// Undefined for forms of tensors that are not dense, or on a kind of device that is not here.
at::Tensor zeros_of(const std::string& form);

// The tensor as a row of bytes that shares its memory; `tensor` is contiguous.
at::Tensor bytes_of(const at::Tensor& tensor);

// The type in which tensors of `type` are summed: float32 for half precision, which c10d's Gloo
// would sum in half precision. Other types that the engines do not know get a wider one.
at::ScalarType working_type(at::ScalarType type);

// The reason why a tensor of this type cannot be reduced with these options; empty: it can.
std::string reduction_problem(const at::Tensor& tensor, const ReduceOptions& options);

}  // namespace dpwa::collective

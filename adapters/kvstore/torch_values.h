#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "adapters/torch_types.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/values.h"
#include "dpwa/kvworker/error.h"

namespace dpwa::kvstore {

// Type and shape of a tensor. Throws KVStoreError that begins with `what`, such as "init of key
// 'w'", for an undefined tensor and for one that no store holds.
ValueSpec spec_of(const at::Tensor& tensor, const std::string& what);

// The same values, dense, contiguous, on `device` and without gradient; the tensor itself if it is
// all that. The rows of a sparse tensor are summed in fp32, or in fp64 for fp64.
at::Tensor dense_on(const at::Tensor& tensor, at::Device device);

// The optimizer of a program as name and numbers, one for each parameter group. Throws
// UnknownOptimizer that names the class and lists the optimizers that a store has.
std::vector<OptimizerOptions> options_of(const torch::optim::Optimizer& optimizer);

}  // namespace dpwa::kvstore

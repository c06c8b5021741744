#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/torch_types.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/values.h"

namespace dpwa {

// A call that the store refuses. The call has changed nothing, and the store can be used further.
class KVStoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dpwa

namespace dpwa::kvstore {

// Type and shape of a tensor. Throws KVStoreError that begins with `what`, such as "init of key
// 'w'", for an undefined tensor and for one that no store holds.
ValueSpec spec_of(const at::Tensor& tensor, const std::string& what);

// The same values, dense, contiguous, on `device` and without gradient; the tensor itself if it is
// all that. The rows of a sparse tensor are summed in fp32, or in fp64 for fp64.
at::Tensor dense_on(const at::Tensor& tensor, at::Device device);

// The slices of a value, one after the other. False: one is missing, or they have another size.
bool copy_slices(const std::vector<SharedBytes>& slices, std::span<std::byte> to);

// The servers and local stores do not have this optimizer.
struct UnknownOptimizer : KVStoreError {
  using KVStoreError::KVStoreError;
};

// The optimizer of a program as name and numbers, one for each parameter group. Throws
// UnknownOptimizer that names the class and lists the optimizers that a store has.
std::vector<OptimizerOptions> options_of(const torch::optim::Optimizer& optimizer);

}  // namespace dpwa::kvstore

#pragma once

#include <ATen/core/Tensor.h>

namespace c10d {
class ProcessGroup;
}

namespace dpwa::collective {

// Moves the memory of a tensor and of all its views into memory that the other members of the group
// read without a copy, where the engine has such and the tensor is all of its storage. Values and
// views stay. c10d::Reducer allocates its buckets so only where DDP_DISABLE_COMM_MEM=0 is in the
// environment, which a library cannot set.
void lend(c10d::ProcessGroup& group, const at::Tensor& tensor);

}  // namespace dpwa::collective

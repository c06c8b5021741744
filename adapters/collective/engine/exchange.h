#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "adapters/collective/engine/process_group.h"

namespace dpwa::collective {

// The two exchanges of c10d that the other operations are made of, blocking, on contiguous tensors.
// They throw what c10d throws: call them in ProcessGroup::run.

// Fills `all` with everybody's `own`, in the order of ranks; `own` has the same size everywhere.
void gather_equal(const ProcessGroup& group, at::Tensor all, at::Tensor own);

// Sends sent[r] rows of `from` to rank r and fills `into` with received[r] rows of each rank r.
// Without counts: the same number to each.
void exchange_rows(const ProcessGroup& group, at::Tensor into, at::Tensor from,
                   std::vector<std::int64_t> received = {}, std::vector<std::int64_t> sent = {});

}  // namespace dpwa::collective

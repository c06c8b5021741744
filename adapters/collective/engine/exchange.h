#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// The two blocking exchanges of c10d from which the other operations are built. Tensors are
// contiguous. Exceptions of c10d pass through, so call them in ProcessGroup::run.

// Fills `all` with the `own` of every rank, in the order of ranks; all have the same size.
void gather_equal(const ProcessGroup& group, at::Tensor all, at::Tensor own);

// Sends sent[r] rows of `from` to rank r and fills `into` with received[r] rows of each rank r.
// Without counts: the same number to each.
void exchange_rows(const ProcessGroup& group, at::Tensor into, at::Tensor from,
                   std::vector<std::int64_t> received = {}, std::vector<std::int64_t> sent = {});

// Waits until an operation of the group has ended, and throws its failure; call it in
// ProcessGroup::run. Afterwards nothing writes into its tensors. A broken group ends its operations
// within milliseconds, but Gloo may lose the wake-up of a send. After a moment such an operation is
// left running in the background, and keeps `tensors`, which it may still use; the first of them
// says where the operation runs.
void bounded_wait(const ProcessGroup& group, const c10::intrusive_ptr<c10d::Work>& work,
                  const std::vector<at::Tensor>& tensors);

// The same, but returns the failure instead of throwing it. Empty: the operation succeeded.
// `what`: the name of the operation in the message of a failure. Call it outside of
// ProcessGroup::run. Afterwards nothing writes into the tensors of the operation, except when it
// was left running in the background, as above.
std::optional<CollectiveError> await_work(const ProcessGroup& group,
                                          const c10::intrusive_ptr<c10d::Work>& work,
                                          const std::string& what,
                                          const std::vector<at::Tensor>& tensors);

}  // namespace dpwa::collective

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// The two exchanges of c10d that the other operations are made of, blocking, on contiguous tensors.
// They throw what c10d throws: call them in ProcessGroup::run.

// Fills `all` with everybody's `own`, in the order of ranks; `own` has the same size everywhere.
void gather_equal(const ProcessGroup& group, at::Tensor all, at::Tensor own);

// Sends sent[r] rows of `from` to rank r and fills `into` with received[r] rows of each rank r.
// Without counts: the same number to each.
void exchange_rows(const ProcessGroup& group, at::Tensor into, at::Tensor from,
                   std::vector<std::int64_t> received = {}, std::vector<std::int64_t> sent = {});

// Waits until an operation of the group has ended; throws what it failed with: call it in
// ProcessGroup::run. After it nothing writes into its tensors. A group that is broken ends its
// operations within milliseconds, but Gloo may lose the wake-up of a send; such an operation is
// left to itself after a moment, with `tensors`, which it may still use.
void bounded_wait(const ProcessGroup& group, const c10::intrusive_ptr<c10d::Work>& work,
                  const std::vector<at::Tensor>& tensors);

// Waits until an operation of the group has ended, failed or not: after this nothing writes into
// its tensors. A group that is broken ends its operations within milliseconds, but Gloo may lose
// the wake-up of a send; such an operation is left to itself after a moment, with `tensors`, which
// it may still use. Empty: it succeeded. `what`: for the message of a failure.
std::optional<CollectiveError> await_work(const ProcessGroup& group,
                                          const c10::intrusive_ptr<c10d::Work>& work,
                                          const std::string& what,
                                          const std::vector<at::Tensor>& tensors);

}  // namespace dpwa::collective

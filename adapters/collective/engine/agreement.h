#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/signature.h"

namespace dpwa::collective {

// Compares the next operation of all members before it begins: one all-gather of 32 bytes each, and
// one of the texts if these differ. Throws CollectiveError (mismatch) on every member with the same
// sentence; the group can continue. All members call it, or none.
//
// `payload`: a number that is exchanged as well. Returns the payloads of all ranks; 0 for members
// that have joined, which are not compared.
std::vector<std::int64_t> agree(const ProcessGroup& group, const Signature& mine,
                                std::int64_t payload = 0);

// The operation in which a joined member takes part: the counterpart of the others' agree().
struct Announced {
  std::string text;                    // the signature of those at work; empty: all have joined
  std::vector<std::int64_t> payloads;  // 0 for those that have joined
  int last = 0;                        // once all have joined: the lowest rank of the last to do so
};

// `answered`: how often this member has called it since it joined. Throws as agree() does if the
// members at work do not agree.
Announced agree_as_joined(const ProcessGroup& group, std::int64_t answered);

// Throws CollectiveError (mismatch) if a payload is 0, which means that the member has joined. For
// operations in which joined members cannot take part. The payloads are those of rank `first` on.
void require_at_work(const ProcessGroup& group, const std::string& operation,
                     const std::vector<std::int64_t>& payloads, int first = 0);

}  // namespace dpwa::collective

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

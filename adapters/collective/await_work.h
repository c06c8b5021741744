#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <optional>
#include <string>
#include <vector>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// Waits until an operation of the group has ended, failed or not: after this nothing writes into
// its tensors. A group that is broken ends its operations within milliseconds, but Gloo may lose
// the wake-up of a send; such an operation is left to itself after a moment, with `tensors`, which
// it may still use. Empty: it succeeded. `what`: for the message of a failure.
std::optional<CollectiveError> await_work(const ProcessGroup& group,
                                          const c10::intrusive_ptr<c10d::Work>& work,
                                          const std::string& what,
                                          const std::vector<at::Tensor>& tensors);

}  // namespace dpwa::collective

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// Waits until an operation of the group has ended; throws what it failed with: call it in
// ProcessGroup::run. After it nothing writes into its tensors. A group that is broken ends its
// operations within milliseconds, but Gloo may lose the wake-up of a send; such an operation is
// left to itself after a moment, with `tensors`, which it may still use.
void bounded_wait(const ProcessGroup& group, const c10::intrusive_ptr<c10d::Work>& work,
                  const std::vector<at::Tensor>& tensors);

}  // namespace dpwa::collective

#include "adapters/collective/await_work.h"

#include "adapters/collective/engine/bounded_wait.h"

namespace dpwa::collective {

std::optional<CollectiveError> await_work(const ProcessGroup& group,
                                          const c10::intrusive_ptr<c10d::Work>& work,
                                          const std::string& what,
                                          const std::vector<at::Tensor>& tensors) {
  try {
    bounded_wait(group, work, tensors);
    return std::nullopt;
  } catch (...) {
    return group.error(what);
  }
}

}  // namespace dpwa::collective

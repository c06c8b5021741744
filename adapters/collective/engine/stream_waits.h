#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/collective/engine/error.h"
#include "adapters/collective/engine/process_group.h"

namespace c10d {
class Work;
}

namespace dpwa::collective {

// The operations of the steps of an engine that is stream-ordered (Connection::stream_ordered). A
// step makes its stream wait for them, and lets the caller go on; the caller waits for those of the
// step before. So it queues one step beyond that of the device, and a rank that is late or lost is
// noticed a step later, by looks at the operations alone. One thread.
class StreamWaits {
 public:
  explicit StreamWaits(const ProcessGroup& group);
  ~StreamWaits();
  StreamWaits(const StreamWaits&) = delete;
  StreamWaits& operator=(const StreamWaits&) = delete;

  // What is queued from now on comes behind the operation on `tensor`, which lives as long as this
  // object knows it. Exceptions of c10d pass through.
  void add(const c10::intrusive_ptr<c10d::Work>& work, const at::Tensor& tensor);
  bool empty() const { return before_.empty(); }
  // Waits for the operations of the step before, which those that were added since then follow. The
  // failure, with `what` as the name of the operation; none: they have ended.
  std::optional<CollectiveError> end_step_before(const std::string& what);
  // Those that were added are now the ones of the step before.
  void end_step();

 private:
  using Waits = std::vector<std::pair<c10::intrusive_ptr<c10d::Work>, at::Tensor>>;

  const ProcessGroup& group_;
  Waits before_;
  Waits now_;
};

}  // namespace dpwa::collective

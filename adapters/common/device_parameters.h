#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/host_copies.h"
#include "dpwa/gossip/parameters.h"

namespace dpwa {

// Parameters on an accelerator. Publishing copies device -> staging on the training stream (so the
// optimizer may go on at once), then staging -> snapshot on a side stream behind an event; the
// snapshot is complete when the side stream's event is. A second one may be published before that:
// its first copy then holds the training stream up until the staging memory is read. What has
// landed is copied to the device on another side stream, so that it does not queue behind the
// snapshot of a step that is still computed; a blend runs one kernel per dtype on the training
// stream behind that copy, which holds the training stream up where it is not done yet. Written
// against the device-neutral streams and events of c10: CUDA, ROCm and XPU builds share it.
class DeviceParameters : public Parameters {
 public:
  explicit DeviceParameters(FlatParameters& flat);

  const Manifest& manifest() const override { return flat_.manifest(); }
  AlignedBuffer allocate(std::size_t bytes, bool shared) override;
  void lock(AlignedBuffer& memory) override;
  void copy_out(std::span<std::byte> snapshot) override;
  void fetch(const Landing& landing) override;
  bool fetched() override { return fetched_ && fetched_->query(); }
  void blend(const Landing& landing, double factor) override;
  void assign(std::span<const std::byte> snapshot) override;
  bool settled() override { return out_.settled() && in_.settled(); }
  std::size_t copies_at_once() const override { return 2; }
  std::size_t unfinished_copies() override;
  bool landing_is_free() override { return in_.settled(); }

 protected:
  // Memory that allocate() gives is not freed while a copy to or from it is under way.
  AlignedBuffer until_copied(AlignedBuffer memory);

 private:
  FlatParameters& flat_;
  at::Tensor staging_;                 // device, uint8[total_bytes]: the parameters being published
  at::Tensor landed_;                  // device, uint8[exchange_bytes]: what is being blended
  c10::Event blended_;                 // on the training stream: landed_ may be overwritten
  std::optional<c10::Event> fetched_;  // on the side stream: landed_ has what is to be blended
  std::deque<c10::Event> leaving_;     // on the side stream: of each snapshot under way
  bool said_not_locked_ = false;
  HostCopies out_;  // these two end first: they use the memory above
  HostCopies in_;
};

// The parameters where the model is. `threads`: of the passes over host memory.
std::unique_ptr<Parameters> parameters_in(FlatParameters& flat, unsigned threads);

}  // namespace dpwa

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "adapters/common/flat_parameters.h"
#include "dpwa/gossip/parameters.h"

namespace dpwa {

// Parameters on an accelerator. Publishing copies device -> staging on the training stream (so the
// optimizer may go on at once), then staging -> snapshot on a side stream behind an event; the
// snapshot is complete when the side stream's event is. A blend copies the landed bytes to the
// device on the side stream and runs one kernel per dtype on the training stream behind it. Written
// against the device-neutral streams and events of c10: CUDA, ROCm and XPU builds share it.
class DeviceParameters : public Parameters {
 public:
  explicit DeviceParameters(FlatParameters& flat);
  ~DeviceParameters() override;  // waits for the side stream: it uses the memory below
  DeviceParameters(const DeviceParameters&) = delete;
  DeviceParameters& operator=(const DeviceParameters&) = delete;

  const Manifest& manifest() const override { return flat_.manifest(); }
  AlignedBuffer allocate(std::size_t bytes, bool shared) override;
  void copy_out(std::span<std::byte> snapshot) override;
  void blend(const Landing& landing, double factor) override;
  void assign(std::span<const std::byte> snapshot) override;
  bool settled() override;

 private:
  c10::Stream training_stream() const;

  FlatParameters& flat_;
  c10::Stream side_;
  at::Tensor staging_;    // device, uint8[total_bytes]: the parameters being published
  at::Tensor landed_;     // device, uint8[exchange_bytes]: what is being blended
  c10::Event staged_;     // on the training stream: staging_ holds what is to be published
  c10::Event side_done_;  // on the side stream: its last copy is complete
  c10::Event blended_;    // on the training stream: landed_ may be overwritten
};

}  // namespace dpwa

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <span>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

// Copies between an accelerator and pinned host memory, in the order of the calls, on a side stream
// beside the training stream (the current one of the device): neither the program nor the device
// waits for them. Written against the device-neutral streams and events of c10. Called by any one
// thread at a time.
class HostCopies {
 public:
  // `logger`: for the line about a device that has failed.
  HostCopies(at::Device device, const char* logger);
  ~HostCopies() { finish(); }
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Queues a copy of a contiguous tensor to the host, behind the work queued on the training
  // stream. The tensor and the memory stay as they are until the event is complete.
  c10::Event out(const at::Tensor& from, std::span<std::byte> to);

  // Whether all copies are complete.
  bool settled() { return copied_.query(); }
  // Waits until they are.
  void finish() noexcept;
  // Host memory of copies is freed behind finish() alone: a device writes on to what has gone. The
  // memory ends before this object.
  void hold(AlignedBuffer& memory);

  // Between these two calls values come back. begin_in() waits until the memory of earlier copies
  // may be written to again; the copies come behind the work queued on the training stream, and
  // what is queued there after end_in() comes behind them.
  void begin_in();
  // The same without the wait, and the copies come behind this event alone.
  void begin_in(c10::Event& behind) { behind.block(side_); }
  // Queues a copy to a tensor of that many bytes, dense in the order of its dimensions or not.
  void in(std::span<const std::byte> from, const at::Tensor& to);
  void end_in();
  // Without that: an event behind all copies so far.
  c10::Event mark();
  // The memory of a tensor, which may be freed at any time, serves no other before the copies so
  // far are complete.
  void keep(const at::Tensor& tensor);

  c10::Stream training_stream() const;

 private:
  const at::Device device_;
  const char* const logger_;
  c10::Stream side_;
  c10::Event queued_;  // on the training stream
  c10::Event copied_;  // on the side stream: its last copy is complete
};

}  // namespace dpwa

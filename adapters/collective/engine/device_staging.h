#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/common/host_copies.h"
#include "dpwa/base/threads.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::collective {

// Host memory through which tensors of one device pass, and their copies: out on one side stream
// and back on another, so that what comes back does not queue behind what is to leave, and the
// device computes on beside both. The memory is kept for later operations. Any thread.
class DeviceStaging {
 public:
  // `allocate`: memory that the device copies to and from by itself.
  DeviceStaging(at::Device device, BufferAllocator allocate);
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;

  const at::Device& device() const { return device_; }

 private:
  friend class StagedTensor;
  struct Slot {
    AlignedBuffer memory;
    std::optional<c10::Event> copied;  // the last copy is complete
    bool taken = false;
  };

  std::shared_ptr<Slot> begin_out(const at::Tensor& tensor);
  void begin_back(Slot& slot, const at::Tensor& tensor);
  void give_up(Slot& slot);
  std::shared_ptr<Slot> take(std::size_t bytes) DPWA_REQUIRES(mutex_);

  const at::Device device_;
  const BufferAllocator allocate_;
  Mutex mutex_;
  std::vector<std::shared_ptr<Slot>> slots_ DPWA_GUARDED_BY(mutex_);
  HostCopies out_ DPWA_GUARDED_BY(mutex_);  // these two end first: they use the memory
  HostCopies back_ DPWA_GUARDED_BY(mutex_);
};

// A tensor of a device on its way through host memory, for one operation. One thread at a time.
class StagedTensor {
 public:
  // Begins to copy it to the host, behind what the caller has queued on the current stream.
  StagedTensor(std::shared_ptr<DeviceStaging> staging, at::Tensor tensor);
  ~StagedTensor();
  StagedTensor(const StagedTensor&) = delete;
  StagedTensor& operator=(const StagedTensor&) = delete;

  // The copy. Waits until it is complete.
  const at::Tensor& host();
  // Begins to copy it back.
  void give_back();
  // What the caller queues from now on comes behind the copies so far; the caller does not wait.
  void follow();
  // Whether these are complete.
  bool settled() { return slot_->copied->query(); }
  void settle() { slot_->copied->synchronize(); }

 private:
  const std::shared_ptr<DeviceStaging> staging_;
  const at::Tensor tensor_;
  const std::shared_ptr<DeviceStaging::Slot> slot_;
  const at::Tensor host_;
};

}  // namespace dpwa::collective

#include "adapters/common/pinned_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <cstdint>
#include <memory>

#include "dpwa/snapshot/page_lock.h"

namespace dpwa {
namespace {

AlignedBuffer from_torch(std::size_t bytes) {
  at::Tensor pinned = at::empty({static_cast<std::int64_t>(bytes)},
                                at::TensorOptions(at::kByte).pinned_memory(true));
  pinned.zero_();
  auto* data = static_cast<std::byte*>(pinned.mutable_data_ptr());
  return AlignedBuffer(std::shared_ptr<std::byte>(data, [pinned](std::byte*) {}), bytes);
}

}  // namespace

// CUDA locks for all devices, but makes a context on the current one of the thread, which costs it
// hundreds of megabytes.
bool lock_pages_for(c10::Device device, AlignedBuffer& memory) {
  const c10::DeviceGuard on_device(device);
  return lock_pages(memory);
}

AlignedBuffer pinned_memory(std::size_t bytes, c10::Device device, bool shared) {
  if (page_lock_calls().lock != nullptr && bytes > 0) {
    AlignedBuffer buffer = AlignedBuffer::of_host(bytes, shared);
    if (lock_pages_for(device, buffer)) return buffer;
  }
  const c10::DeviceGuard on_device(device);
  return from_torch(bytes);
}

}  // namespace dpwa

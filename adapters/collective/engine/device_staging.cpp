#include "adapters/collective/engine/device_staging.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

namespace dpwa::collective {
namespace {

constexpr const char* logger = "collective";

std::span<std::byte> part_of(AlignedBuffer& memory, const at::Tensor& tensor) {
  return memory.bytes().first(tensor.nbytes());
}

}  // namespace

DeviceStaging::DeviceStaging(at::Device device, BufferAllocator allocate)
    : device_(device),
      allocate_(std::move(allocate)),
      out_(device, logger),
      back_(device, logger) {}

// The smallest that is free and large enough. One of an operation that failed may still be the
// place of a copy.
std::shared_ptr<DeviceStaging::Slot> DeviceStaging::take(std::size_t bytes) {
  std::shared_ptr<Slot> found;
  for (const auto& slot : slots_) {
    const std::size_t size = slot->memory.bytes().size();
    if (slot->taken || size < bytes || (found && size >= found->memory.bytes().size())) continue;
    if (!slot->copied || slot->copied->query()) found = slot;
  }
  if (!found) {
    found = slots_.emplace_back(std::make_shared<Slot>());
    found->memory = allocate_(std::max<std::size_t>(bytes, 1));
  }
  found->taken = true;
  return found;
}

std::shared_ptr<DeviceStaging::Slot> DeviceStaging::begin_out(const at::Tensor& tensor) {
  const MutexLock lock(mutex_);
  const auto slot = take(tensor.nbytes());
  slot->copied.emplace(out_.out(tensor, part_of(slot->memory, tensor)));
  out_.keep(tensor);
  return slot;
}

// Nothing changes the tensor between the two copies, so this one waits for nothing.
void DeviceStaging::begin_back(Slot& slot, const at::Tensor& tensor) {
  const MutexLock lock(mutex_);
  back_.in(part_of(slot.memory, tensor), tensor);
  slot.copied.emplace(back_.mark());
  back_.keep(tensor);
}

void DeviceStaging::give_up(Slot& slot) {
  const MutexLock lock(mutex_);
  slot.taken = false;
}

StagedTensor::StagedTensor(std::shared_ptr<DeviceStaging> staging, at::Tensor tensor)
    : staging_(std::move(staging)),
      tensor_(std::move(tensor)),
      slot_(staging_->begin_out(tensor_)),
      host_(at::from_blob(slot_->memory.bytes().data(), tensor_.sizes(),
                          at::TensorOptions(tensor_.scalar_type()))) {}

StagedTensor::~StagedTensor() {
  staging_->give_up(*slot_);
}

const at::Tensor& StagedTensor::host() {
  settle();
  return host_;
}

void StagedTensor::give_back() {
  staging_->begin_back(*slot_, tensor_);
}

void StagedTensor::follow() {
  slot_->copied->block(
      c10::impl::VirtualGuardImpl(tensor_.device().type()).getStream(tensor_.device()));
}

}  // namespace dpwa::collective

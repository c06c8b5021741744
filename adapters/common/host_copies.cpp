#include "adapters/common/host_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>

#include "dpwa/base/invariant.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

c10::impl::VirtualGuardImpl device_api(const at::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

// Host memory in the shape and type of `like`.
at::Tensor host_view(std::span<const std::byte> bytes, const at::Tensor& like) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), like.sizes(),
                       at::TensorOptions(like.scalar_type()));
}

}  // namespace

HostCopies::HostCopies(at::Device device, const char* logger)
    : device_(device),
      logger_(logger),
      side_(device_api(device).getNewStream(device)),
      queued_(device.type()),
      copied_(device.type()) {}

void HostCopies::finish() noexcept {
  try {
    copied_.synchronize();
  } catch (const c10::Error& error) {  // a device that has failed copies no more
    log(LogLevel::warn, logger_, error.what_without_backtrace());
  }
}

void HostCopies::hold(AlignedBuffer& memory) {
  memory.keep(std::shared_ptr<void>(
      this, [](void* copies) { static_cast<HostCopies*>(copies)->finish(); }));
}

c10::Stream HostCopies::training_stream() const {
  return device_api(device_).getStream(device_);
}

c10::Event HostCopies::out(const at::Tensor& from, std::span<std::byte> to) {
  DPWA_INVARIANT(from.is_contiguous() && from.nbytes() == to.size(), "a copy keeps its length",
                 from.nbytes(), to.size());
  const at::NoGradGuard no_grad;
  queued_.record(training_stream());
  queued_.block(side_);
  const c10::StreamGuard on_side(side_);
  host_view(to, from).copy_(from, /*non_blocking=*/true);
  return mark();
}

void HostCopies::begin_in() {
  copied_.synchronize();
  queued_.record(training_stream());
  queued_.block(side_);
}

void HostCopies::in(std::span<const std::byte> from, const at::Tensor& to) {
  DPWA_INVARIANT(to.nbytes() == from.size(), "a copy keeps its length", to.nbytes(), from.size());
  const at::NoGradGuard no_grad;
  const c10::StreamGuard on_side(side_);
  to.detach().copy_(host_view(from, to), /*non_blocking=*/true);
}

void HostCopies::end_in() {
  copied_.record(side_);
  copied_.block(training_stream());
}

c10::Event HostCopies::mark() {
  c10::Event done(device_.type());
  done.record(side_);
  copied_.record(side_);
  return done;
}

void HostCopies::keep(const at::Tensor& tensor) {
  device_api(device_).recordDataPtrOnStream(tensor.storage().data_ptr(), side_);
}

}  // namespace dpwa

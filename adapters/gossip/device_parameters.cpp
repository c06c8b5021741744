#include "adapters/gossip/device_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/pinned_memory.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

c10::impl::VirtualGuardImpl device_api(const at::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

at::Tensor host_view(std::span<const std::byte> bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()),
                       {static_cast<std::int64_t>(bytes.size())}, at::TensorOptions(at::kByte));
}

}  // namespace

DeviceParameters::DeviceParameters(FlatParameters& flat)
    : flat_(flat),
      side_(device_api(flat.device()).getNewStream(flat.device())),
      staging_(at::empty_like(flat.memory())),
      landed_(at::empty({static_cast<std::int64_t>(flat.manifest().exchange_bytes())},
                        flat.memory().options())),
      staged_(flat.device().type()),
      side_done_(flat.device().type()),
      blended_(flat.device().type()) {}

DeviceParameters::~DeviceParameters() {
  try {
    side_done_.synchronize();
  } catch (const c10::Error& error) {  // a device that has failed copies no more
    log(LogLevel::warn, "gossip", error.what_without_backtrace());
  }
}

AlignedBuffer DeviceParameters::allocate(std::size_t bytes, bool shared) {
  return pinned_memory(bytes, shared);
}

c10::Stream DeviceParameters::training_stream() const {
  return device_api(flat_.device()).getStream(flat_.device());
}

bool DeviceParameters::settled() {
  return side_done_.query();
}

void DeviceParameters::copy_out(std::span<std::byte> snapshot) {
  const at::NoGradGuard no_grad;
  staging_.copy_(flat_.memory(), /*non_blocking=*/true);
  staged_.record(training_stream());
  staged_.block(side_);
  const c10::StreamGuard on_side(side_);
  host_view(snapshot).copy_(staging_, /*non_blocking=*/true);
  side_done_.record(side_);
}

void DeviceParameters::blend(const Landing& landing, double factor) {
  const at::NoGradGuard no_grad;
  blended_.block(side_);
  const ByteRange range = overlap(landing.range(), {0, manifest().exchange_bytes()});
  const auto part = [](const at::Tensor& tensor, std::uint64_t offset, std::uint64_t length) {
    return tensor.narrow(0, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(length));
  };
  {
    const c10::StreamGuard on_side(side_);
    part(landed_, range.offset, range.length)
        .copy_(host_view(landing.bytes().subspan(range.offset, range.length)),
               /*non_blocking=*/true);
    side_done_.record(side_);
  }
  side_done_.block(training_stream());
  const auto& regions = manifest().regions();
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].rule != BlendRule::interpolate) continue;
    const ByteRange piece = overlap(range, regions[i].range());
    if (piece.length == 0) continue;
    const std::uint64_t element = size_of(regions[i].dtype);
    at::Tensor x =
        part(flat_.region(i), (piece.offset - regions[i].offset) / element, piece.length / element);
    const at::Tensor y =
        part(landed_, piece.offset, piece.length).view(to_scalar_type(regions[i].dtype));
    if (landing.mode() == LandingMode::difference) {
      x.add_(y, factor);
    } else {
      x.lerp_(y, factor);
    }
  }
  blended_.record(training_stream());
}

void DeviceParameters::assign(std::span<const std::byte> snapshot) {
  const at::NoGradGuard no_grad;
  flat_.memory().copy_(host_view(snapshot));
}

}  // namespace dpwa

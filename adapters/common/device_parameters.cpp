#include "adapters/common/device_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <utility>

#include "adapters/common/pinned_memory.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/log/log.h"

namespace dpwa {

namespace {

at::Tensor part(const at::Tensor& tensor, std::uint64_t offset, std::uint64_t length) {
  return tensor.narrow(0, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(length));
}

ByteRange blended_range(const Landing& landing) {
  return overlap(landing.range(), {0, landing.manifest().exchange_bytes()});
}

}  // namespace

DeviceParameters::DeviceParameters(FlatParameters& flat)
    : flat_(flat),
      staging_(at::empty_like(flat.memory())),
      landed_(at::empty({static_cast<std::int64_t>(flat.manifest().exchange_bytes())},
                        flat.memory().options())),
      blended_(flat.device().type()),
      out_(flat.device(), "gossip"),
      in_(flat.device(), "gossip") {}

AlignedBuffer DeviceParameters::allocate(std::size_t bytes, bool shared) {
  return until_copied(pinned_memory(bytes, flat_.device(), shared));
}

AlignedBuffer DeviceParameters::until_copied(AlignedBuffer memory) {
  out_.hold(memory);
  in_.hold(memory);
  return memory;
}

void DeviceParameters::lock(AlignedBuffer& memory) {
  if (!lock_pages_for(flat_.device(), memory) && !std::exchange(said_not_locked_, true))
    log(LogLevel::warn, "gossip",
        "the device cannot lock the memory of the node process: copies to and from it are slower");
}

void DeviceParameters::copy_out(std::span<std::byte> snapshot) {
  const at::NoGradGuard no_grad;
  if (unfinished_copies() > 0) leaving_.back().block(out_.training_stream());
  staging_.copy_(flat_.memory(), /*non_blocking=*/true);
  leaving_.push_back(out_.out(staging_, snapshot));
}

std::size_t DeviceParameters::unfinished_copies() {
  while (!leaving_.empty() && leaving_.front().query()) leaving_.pop_front();
  return leaving_.size();
}

void DeviceParameters::fetch(const Landing& landing) {
  const ByteRange range = blended_range(landing);
  in_.begin_in(blended_);
  in_.in(landing.bytes().subspan(range.offset, range.length),
         part(landed_, range.offset, range.length));
  fetched_.emplace(in_.mark());
}

void DeviceParameters::blend(const Landing& landing, double factor) {
  const at::NoGradGuard no_grad;
  const ByteRange range = blended_range(landing);
  if (!fetched_) fetch(landing);
  fetched_->block(in_.training_stream());
  fetched_.reset();
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
  blended_.record(in_.training_stream());
}

void DeviceParameters::assign(std::span<const std::byte> snapshot) {
  const at::NoGradGuard no_grad;
  flat_.memory().copy_(at::from_blob(const_cast<std::byte*>(snapshot.data()),
                                     {static_cast<std::int64_t>(snapshot.size())},
                                     at::TensorOptions(at::kByte)));
}

std::unique_ptr<Parameters> parameters_in(FlatParameters& flat, unsigned threads) {
  if (!flat.device().is_cpu()) return std::make_unique<DeviceParameters>(flat);
  auto* data = static_cast<std::byte*>(flat.memory().mutable_data_ptr());
  return std::make_unique<HostParameters>(flat.manifest(),
                                          std::span(data, flat.manifest().total_bytes()), threads);
}

}  // namespace dpwa

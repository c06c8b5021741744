#include "python/core/device_parameters.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/snapshot/page_lock.h"
#include "python/core/bindings.h"

namespace dpwa::python {
namespace {

// The array belongs to nobody: the passes do not keep it beyond the copy that they begin.
Bytes view_of(std::span<const std::byte> bytes) {
  return Bytes(const_cast<std::byte*>(bytes.data()), {bytes.size()}, nanobind::handle());
}

ByteRange blended_range(const Landing& landing) {
  return overlap(landing.range(), {0, landing.manifest().exchange_bytes()});
}

}  // namespace

DeviceParameters::DeviceParameters(Manifest manifest, const Asked& passes)
    : manifest_(std::move(manifest)), passes_(passes) {}

AlignedBuffer DeviceParameters::allocate(std::size_t bytes, bool shared) {
  AlignedBuffer buffer = AlignedBuffer::of_host(bytes, shared);
  lock(buffer);
  return buffer;
}

bool lock_pages_for(nanobind::handle passes, AlignedBuffer& memory) {
  bool locked = false;
  passes.attr("here")(nanobind::cpp_function([&] { locked = lock_pages(memory); }));
  return locked;
}

void DeviceParameters::lock(AlignedBuffer& memory) {
  bool locked = false;
  passes_.use([&](nanobind::handle passes) { locked = lock_pages_for(passes, memory); });
  if (!locked && !std::exchange(said_not_locked_, true))
    log(LogLevel::warn, "gossip",
        "the device cannot lock host memory: copies to and from it are slower");
}

void DeviceParameters::copy_out(std::span<std::byte> snapshot) {
  passes_.use([&](nanobind::handle passes) { passes.attr("copy_out")(view_of(snapshot)); });
}

void DeviceParameters::fetch(const Landing& landing) {
  const ByteRange range = blended_range(landing);
  passes_.use([&](nanobind::handle passes) {
    passes.attr("fetch")(view_of(landing.bytes().subspan(range.offset, range.length)),
                         range.offset);
  });
}

void DeviceParameters::blend(const Landing& landing, double factor) {
  const ByteRange range = blended_range(landing);
  passes_.use([&](nanobind::handle passes) {
    passes.attr("blend")(view_of(landing.bytes().subspan(range.offset, range.length)), range.offset,
                         landing.mode() == LandingMode::difference, factor);
  });
}

void DeviceParameters::assign(std::span<const std::byte> snapshot) {
  passes_.use([&](nanobind::handle passes) { passes.attr("assign")(view_of(snapshot)); });
}

}  // namespace dpwa::python

#pragma once

#include <cstddef>
#include <span>

#include "dpwa/gossip/parameters.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/manifest.h"
#include "python/core/asked.h"

namespace dpwa::python {

// For copies from and to the device of `passes`. false: it cannot lock memory, and copies are
// slower. CUDA would make a context on the first device if another were the current one.
bool lock_pages_for(nanobind::handle passes, AlignedBuffer& memory);

// The parameters of a model on a device. The program makes the passes there, on streams of its own
// (DevicePasses in python/dpwa/device.py); what is decided, and the host memory, are of the core.
class DeviceParameters final : public Parameters {
 public:
  // `passes` is asked during calls of the node.
  DeviceParameters(Manifest manifest, const Asked& passes);

  const Manifest& manifest() const override { return manifest_; }
  AlignedBuffer allocate(std::size_t bytes, bool shared) override;
  void lock(AlignedBuffer& memory) override;
  void copy_out(std::span<std::byte> snapshot) override;
  void fetch(const Landing& landing) override;
  bool fetched() override { return passes_.ask<bool>("is_fetched"); }
  void blend(const Landing& landing, double factor) override;
  bool settled() override { return unfinished_copies() == 0 && landing_is_free(); }
  std::size_t copies_at_once() const override { return 2; }
  std::size_t unfinished_copies() override { return passes_.ask<std::size_t>("copies_under_way"); }
  bool landing_is_free() override { return passes_.ask<bool>("landing_is_free"); }
  void assign(std::span<const std::byte> snapshot) override;

  // That of the step of this number, once its copy to the host is complete.
  double loss(std::size_t step) const { return passes_.ask<double>("loss", step); }

 private:
  const Manifest manifest_;
  const Asked passes_;
  bool said_not_locked_ = false;
};

}  // namespace dpwa::python

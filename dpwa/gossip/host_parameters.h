#pragma once

#include "dpwa/gossip/parameters.h"

namespace dpwa {

// Parameters in host memory, laid out as their manifest says: publishing is one copy, blending one
// pass over each region.
class HostParameters : public Parameters {
 public:
  // `memory` holds manifest.total_bytes() and outlives this object.
  HostParameters(Manifest manifest, std::span<std::byte> memory);

  const Manifest& manifest() const override { return manifest_; }
  void copy_out(std::span<std::byte> snapshot) override;
  void blend(const Landing& landing, double factor) override;
  void assign(std::span<const std::byte> snapshot) override;

 private:
  const Manifest manifest_;
  const std::span<std::byte> memory_;
};

// The same passes over bytes `range` of any memory laid out by `manifest`.
void blend_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                   std::span<const std::byte> landed, LandingMode mode, double factor);

}  // namespace dpwa

#pragma once

#include "dpwa/gossip/parallel_pass.h"
#include "dpwa/gossip/parameters.h"

namespace dpwa {

// Parameters in host memory, laid out as their manifest says: publishing is one copy, blending one
// pass over each region, and both at once one pass as well. The bits do not depend on the threads.
class HostParameters : public Parameters {
 public:
  // From this size on snapshots are stored past the cache.
  static constexpr std::size_t stream_from_bytes = std::size_t{2} << 20;
  // From this size on passes are shared among threads.
  static constexpr std::size_t threads_from_bytes = std::size_t{8} << 20;

  // `memory` holds manifest.total_bytes() at a multiple of 64 bytes and outlives this object. Of
  // `max_threads`, the caller's included, no more are used than the process has processors at this
  // moment, and one alone for a model below threads_from_bytes.
  HostParameters(Manifest manifest, std::span<std::byte> memory, unsigned max_threads = 1);

  const Manifest& manifest() const override { return manifest_; }
  void copy_out(std::span<std::byte> snapshot) override;
  void blend(const Landing& landing, double factor) override;
  void blend_and_copy_out(const Landing& landing, double factor,
                          std::span<std::byte> snapshot) override;
  void assign(std::span<const std::byte> snapshot) override;

  std::size_t threads() const { return passes_.threads(); }

 private:
  const Manifest manifest_;
  const std::span<std::byte> memory_;
  const kernels::Stores stores_;  // of snapshots
  ParallelPass passes_;
};

}  // namespace dpwa

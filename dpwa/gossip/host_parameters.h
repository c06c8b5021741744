#pragma once

#include <cstddef>
#include <span>

#include "dpwa/gossip/parallel_pass.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// Parameters in host memory, laid out as their manifest says: publishing is one copy, blending one
// pass over each region, and both at once one pass as well. The bits do not depend on the threads.
class HostParameters : public Parameters {
 public:
  // From this size on snapshots are stored past the cache: a pass that blends and copies then takes
  // 0.6 to 0.7 of the time. Below, readers find the snapshot in the cache.
  static constexpr std::size_t stream_from_bytes = std::size_t{2} << 20;
  // From this size on a pass may be shared among threads. It then takes about 300 us on one core,
  // twice the time to wake another thread. With two cores it took 0.78 of that time within a cache
  // of 32 MiB. Beyond the cache it took as long where one core fills the memory bus, and nearly
  // half as long where it does not.
  static constexpr std::size_t threads_from_bytes = std::size_t{8} << 20;

  // `memory` holds manifest.total_bytes() at a multiple of 64 bytes and outlives this object.
  // `max_threads` includes the thread of the caller. The process never uses more threads than
  // processor_count() at this moment, and only one for a model below threads_from_bytes.
  HostParameters(Manifest manifest, std::span<std::byte> memory, unsigned max_threads = 1);

  const Manifest& manifest() const override { return manifest_; }
  void copy_out(std::span<std::byte> snapshot) override;
  void blend(const Landing& landing, double factor) override;
  void blend_and_copy_out(const Landing& landing, double factor,
                          std::span<std::byte> snapshot) override;
  void assign(std::span<const std::byte> snapshot) override;

  std::size_t threads() const { return passes_.threads(); }

 private:
  template <class Pass>
  void run(SharingChoice& choice, ByteRange bytes, const Pass& pass);

  const Manifest manifest_;
  const std::span<std::byte> memory_;
  const kernels::Stores stores_;  // of snapshots
  ParallelPass passes_;
  SharingChoice copies_;
  SharingChoice blends_;
  SharingChoice blends_with_copy_;
};

// Blends bytes `range` of what has landed into memory laid out by `manifest`. The mode of the
// landing decides between delta and lerp, with `factor`. Counters and carried tensors stay. `range`
// begins at a multiple of 64 and ends at one, or at the end of a tensor.
void blend_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                   std::span<const std::byte> landed, LandingMode mode, double factor);

// Raises the counters in memory to those of another model where those are larger; the rest stays.
// Only for the final average: in every blend, a step could be counted twice on its way over several
// nodes.
void take_larger_counters(const Manifest& manifest, std::span<std::byte> memory,
                          std::span<const std::byte> other);

// Like blend_regions(), for the part of `range` within `landed_range`. Copies bytes `range` of the
// result into `copy` in the same pass.
void blend_and_copy_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                            std::span<const std::byte> landed, ByteRange landed_range,
                            LandingMode mode, double factor, std::span<std::byte> copy,
                            kernels::Stores stores);

}  // namespace dpwa

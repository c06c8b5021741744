#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/rules/model_sketch.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The sketch of a snapshot's interpolated values, gaps included: one pass over memory, in pieces,
// so that a thread can do other work between them. The same bits on every processor, whatever the
// pieces. Manifest and model outlive it.
class SketchPass {
 public:
  // `model`: the whole snapshot.
  SketchPass(const Manifest& manifest, std::span<const std::byte> model)
      : manifest_(manifest), model_(model) {}

  // Goes on for at least so many elements; false: the pass is over.
  bool advance(std::size_t elements);
  ModelSketch result() const;  // of what it has passed

  static constexpr std::size_t block_elements = 64;  // which take neighbouring sums

 private:
  const Manifest& manifest_;
  const std::span<const std::byte> model_;
  std::size_t region_ = 0;
  std::size_t at_ = 0;  // the next element of the region
  std::uint64_t block_ = 0;
  // The block at the last sum goes on behind it.
  std::array<double, ModelSketch::size + block_elements> sums_{};
};

// All at once.
ModelSketch sketch_of(const Manifest& manifest, std::span<const std::byte> model);

}  // namespace dpwa

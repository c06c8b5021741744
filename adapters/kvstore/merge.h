#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/slices.h"

namespace dpwa::kvstore {

// A store of one process works on a value in ranges of slice_elements, on several threads at once:
// the sum of a range stays in the cache for the update. An empty value has one empty range.
std::size_t range_count(std::uint64_t elements);
ItemRange range_at(std::uint64_t elements, std::size_t index);

// One for each range.
std::vector<Compressor> compressors_of(const CompressionOptions& options, DType dtype,
                                       std::uint64_t elements);

// The gradients of one value in host memory, of `dtype`.
struct Gradients {
  DType dtype;
  std::uint64_t elements;
  std::vector<std::span<const std::byte>> gradients;
  std::vector<std::vector<Compressor>*> compressors;  // by gradient; null: not compressed
};

// sum = Σ gradients, in elements of computed_in(dtype).
void sum_into(const Gradients& merge, std::span<std::byte> sum);
// One step of the optimizer; `states`: one for each range.
void update_by(const Gradients& merge, const OptimizerOptions& options,
               std::span<OptimizerState> states, std::span<std::byte> values);
// values = Σ gradients.
void replace_by(const Gradients& merge, std::span<std::byte> values);

}  // namespace dpwa::kvstore

#include "adapters/kvstore/merge.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace dpwa::kvstore {
namespace {

// Adds up the range into `sum`, which is large enough.
void sum_range(const Gradients& merge, std::size_t index, std::span<std::byte> sum) {
  const ItemRange range = range_at(merge.elements, index);
  const std::size_t size = size_of(merge.dtype);
  std::vector<Contribution> contributions;
  std::vector<std::vector<std::byte>> compressed(merge.gradients.size());
  for (std::size_t i = 0; i < merge.gradients.size(); ++i) {
    const auto gradient = merge.gradients[i].subspan(range.from * size, range.count * size);
    contributions.push_back({Compression::none, gradient});
    if (!merge.compressors[i]) continue;
    Compressor& compressor = merge.compressors[i]->at(index);
    compressed[i].resize(compressor.bytes());
    // Values that are not finite are kept, as in a program without a store.
    if (compressor.compress(gradient, compressed[i]))
      contributions.back() = {compressor.type(), compressed[i]};
  }
  add_up(merge.dtype, sum, contributions);
}

// Calls use(index, range, sum) for every range, on several threads at once.
template <class Use>
void for_each_sum(const Gradients& merge, const Use& use) {
  const std::size_t wide = size_of(computed_in(merge.dtype));
  const auto ranges = static_cast<std::int64_t>(range_count(merge.elements));
  at::parallel_for(0, ranges, 1, [&](std::int64_t begin, std::int64_t end) {
    // Kept for the next call: fresh memory costs as much as the sum.
    static thread_local std::vector<std::byte> room;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const ItemRange range = range_at(merge.elements, index);
      if (room.size() < range.count * wide) room.resize(range.count * wide);
      const auto sum = std::span(room).first(range.count * wide);
      sum_range(merge, index, sum);
      use(index, range, sum);
    }
  });
}

}  // namespace

std::size_t range_count(std::uint64_t elements) {
  return std::max<std::uint64_t>(1, (elements + slice_elements - 1) / slice_elements);
}

ItemRange range_at(std::uint64_t elements, std::size_t index) {
  const std::uint64_t from = index * slice_elements;
  return {from, std::min(slice_elements, elements - from)};
}

std::vector<Compressor> compressors_of(const CompressionOptions& options, DType dtype,
                                       std::uint64_t elements) {
  std::vector<Compressor> compressors;
  for (std::size_t i = 0; i < range_count(elements); ++i)
    compressors.emplace_back(options, dtype, range_at(elements, i).count);
  return compressors;
}

void sum_into(const Gradients& merge, std::span<std::byte> sum) {
  const std::size_t wide = size_of(computed_in(merge.dtype));
  const auto ranges = static_cast<std::int64_t>(range_count(merge.elements));
  at::parallel_for(0, ranges, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const ItemRange range = range_at(merge.elements, static_cast<std::size_t>(i));
      sum_range(merge, static_cast<std::size_t>(i),
                sum.subspan(range.from * wide, range.count * wide));
    }
  });
}

void update_by(const Gradients& merge, const OptimizerOptions& options,
               std::span<OptimizerState> states, std::span<std::byte> values) {
  const std::size_t size = size_of(merge.dtype);
  for_each_sum(
      merge, [&](std::size_t index, const ItemRange& range, std::span<const std::byte> sum) {
        apply_update(options, merge.dtype, values.subspan(range.from * size, range.count * size),
                     sum, 1, states[index]);
      });
}

void replace_by(const Gradients& merge, std::span<std::byte> values) {
  const std::size_t size = size_of(merge.dtype);
  for_each_sum(merge, [&](std::size_t, const ItemRange& range, std::span<const std::byte> sum) {
    replace_values(merge.dtype, values.subspan(range.from * size, range.count * size), sum, 1);
  });
}

}  // namespace dpwa::kvstore

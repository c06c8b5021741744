#include "dpwa/snapshot/blocks.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dpwa/rules/options.h"

namespace dpwa {
namespace {

// A cut inside a large layer moves to an end of the layer or of a tensor within this part of a
// share.
constexpr std::uint64_t snap_parts = 8;

struct Boundary {
  std::uint64_t offset;
  bool layer;  // a layer begins here, not just a tensor
};

std::string_view layer_of(const TensorSpec& tensor) {
  const auto dot = tensor.name.rfind('.');
  return std::string_view(tensor.name).substr(0, dot == std::string::npos ? 0 : dot);
}

// The places where tensors begin, in the order of the layout, and the end of the last one.
std::vector<Boundary> boundaries_of(const Manifest& manifest) {
  const auto& tensors = manifest.tensors();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool moves = manifest.offset_of(i) < manifest.exchange_bytes();
    if (moves && tensors[i].bytes() > 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return manifest.offset_of(i); });
  std::vector<Boundary> boundaries;
  const TensorSpec* before = nullptr;
  for (const std::size_t i : order) {
    const TensorSpec& tensor = tensors[i];
    const bool same_layer = before != nullptr && layer_of(*before) == layer_of(tensor) &&
                            before->rule == tensor.rule && before->dtype == tensor.dtype;
    boundaries.push_back({manifest.offset_of(i), !same_layer});
    before = &tensor;
  }
  boundaries.push_back({manifest.exchange_bytes(), true});
  return boundaries;
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
  return a < b ? b - a : a - b;
}

// Chooses the cuts one after the other.
class Cutter {
 public:
  Cutter(const Manifest& manifest, std::size_t count)
      : boundaries_(boundaries_of(manifest)),
        total_(manifest.exchange_bytes()),
        share_(total_ / count) {}

  // The end of the block that begins at `at`, with `after` more to come behind it.
  std::uint64_t next(std::uint64_t at, std::uint64_t after) {
    first_ = at + tensor_alignment;
    last_ = (total_ - 1) / tensor_alignment * tensor_alignment - (after - 1) * tensor_alignment;
    const std::uint64_t ideal = at + (total_ - at) / (after + 1);
    const Run layer = run_around(ideal, true);
    if (layer.length() <= share_) {
      if (const auto end = nearer_end(layer, ideal)) return *end;
    }
    if (const auto end = nearer_end(layer, ideal, share_ / snap_parts)) return *end;
    const Run tensor = run_around(ideal, false);
    const std::uint64_t reach = tensor.length() <= share_ ? share_ : share_ / snap_parts;
    if (const auto end = nearer_end(tensor, ideal, reach)) return *end;
    const std::uint64_t aligned = (ideal + tensor_alignment / 2) & ~(tensor_alignment - 1);
    return std::clamp(aligned, first_, last_);
  }

 private:
  struct Run {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t length() const { return end - begin; }
  };

  // The layer or tensor that holds the byte at `place`.
  Run run_around(std::uint64_t place, bool layer) const {
    const auto counts = [layer](const Boundary& boundary) { return boundary.layer || !layer; };
    auto end = std::ranges::upper_bound(boundaries_, place, {}, &Boundary::offset);
    auto begin = std::prev(end);
    while (!counts(*begin)) --begin;
    while (!counts(*end)) ++end;
    return {begin->offset, end->offset};
  }

  // The nearer end of `run` that leaves room for every block and is no farther than `reach`.
  std::optional<std::uint64_t> nearer_end(const Run& run, std::uint64_t ideal,
                                          std::uint64_t reach = max_snapshot_bytes) const {
    std::optional<std::uint64_t> best;
    for (const std::uint64_t end : {run.begin, run.end}) {
      if (end < first_ || end > last_ || distance(end, ideal) > reach) continue;
      if (!best || distance(end, ideal) < distance(*best, ideal)) best = end;
    }
    return best;
  }

  const std::vector<Boundary> boundaries_;
  const std::uint64_t total_;
  const std::uint64_t share_;
  std::uint64_t first_ = 0;  // of the places where the block under way may end
  std::uint64_t last_ = 0;
};

}  // namespace

std::size_t most_blocks(const Manifest& manifest) {
  const std::uint64_t units = (manifest.exchange_bytes() + tensor_alignment - 1) / tensor_alignment;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(units, 1, max_blocks));
}

std::vector<ByteRange> layer_blocks(const Manifest& manifest, std::size_t count) {
  const std::size_t most = most_blocks(manifest);
  if (count < 1 || count > most) {
    throw std::invalid_argument(std::to_string(count) + " blocks, but the model exchanges only " +
                                std::to_string(manifest.exchange_bytes()) + " bytes, in steps of " +
                                std::to_string(tensor_alignment) + "; accepted: 1 to " +
                                std::to_string(most));
  }
  std::vector<ByteRange> blocks;
  std::uint64_t at = 0;
  Cutter cutter(manifest, count);
  for (std::size_t after = count - 1; after > 0; --after) {
    const std::uint64_t end = cutter.next(at, after);
    blocks.push_back({at, end - at});
    at = end;
  }
  blocks.push_back({at, manifest.exchange_bytes() - at});
  return blocks;
}

}  // namespace dpwa

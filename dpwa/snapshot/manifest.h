#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/snapshot/byte_range.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa {

// How a tensor takes part in a blend. The values travel on the wire: never renumber.
enum class BlendRule : std::uint8_t {
  interpolate = 1,  // floating-point parameters and buffers
  maximum = 2,      // integer counters: own ones in a blend, the largest in the final average
  carry = 3,        // frozen parameters and all else: copied in full pulls only
};

// Bounds of a model, on the wire as well.
inline constexpr std::size_t max_tensors = 65536;
inline constexpr std::size_t max_rank = 16;
inline constexpr std::size_t max_tensor_name_bytes = 255;
inline constexpr std::uint64_t max_snapshot_bytes = std::uint64_t{1} << 48;
inline constexpr std::uint64_t tensor_alignment = 64;  // bytes; of regions as well

// Product of the extents, 1 for a scalar. Throws std::invalid_argument above max_snapshot_bytes.
std::uint64_t elements_of(const std::vector<std::uint64_t>& shape);
// Such as "float32[10,128]".
std::string type_text(DType dtype, const std::vector<std::uint64_t>& shape);

struct TensorSpec {
  std::string name;
  DType dtype = DType::float32;
  BlendRule rule = BlendRule::interpolate;
  std::vector<std::uint64_t> shape;

  std::uint64_t elements() const { return elements_of(shape); }  // throws
  std::uint64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

// A contiguous run of a snapshot in which all tensors share dtype and rule, the gaps between them
// included.
struct Region {
  DType dtype = DType::float32;
  BlendRule rule = BlendRule::interpolate;
  std::uint64_t offset = 0;  // bytes from the start of the snapshot, a multiple of 64
  std::uint64_t bytes = 0;
  ByteRange range() const { return {offset, bytes}; }
};

using Fingerprint = std::array<std::uint8_t, 32>;

// The content of a snapshot: the tensors in the model's order, with the place of each. Tensors of
// one rule and dtype lie side by side in one region, each at a multiple of 64 bytes: vector loads
// and device kernels find them aligned, and a pull may ask for any run of whole tensors. Regions
// follow each other by rule, then by dtype, so that what an ordinary pull moves (interpolate and
// maximum) comes first. Gaps are zero and stay zero under every blend rule. Two models may exchange
// parameters iff their fingerprints are equal. Immutable; thread-safe.
class Manifest {
 public:
  Manifest() = default;
  // Throws std::invalid_argument that names the tensor: a bound above is exceeded; a name is empty,
  // used twice, not UTF-8 or holds control characters; a dtype or rule is unknown, or does not fit
  // the other.
  explicit Manifest(std::vector<TensorSpec> tensors);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  const std::vector<Region>& regions() const { return regions_; }
  std::uint64_t offset_of(std::size_t tensor) const { return offsets_.at(tensor); }
  std::uint64_t exchange_bytes() const { return exchange_bytes_; }  // what an ordinary pull moves
  std::uint64_t total_bytes() const { return total_bytes_; }        // what a full pull moves
  // SHA-256 of the tensor list without settings (snapshot/mark.h).
  const Fingerprint& fingerprint() const { return fingerprint_; }
  // The same with its settings, as HELLO states it; equal where there are none.
  const Fingerprint& stated_fingerprint() const { return stated_fingerprint_; }

 private:
  std::vector<TensorSpec> tensors_;
  std::vector<std::uint64_t> offsets_;
  std::vector<Region> regions_;
  std::uint64_t exchange_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  Fingerprint fingerprint_{};
  Fingerprint stated_fingerprint_{};
};

// The model of a node, by the node's name.
struct NodeModel {
  const std::string& node;
  const Manifest& manifest;
};

// The first difference in words that are right on every node, e.g. "tensor 3 'fc2.weight' is
// float32[10,128] on 'w1' and float32[10,256] on 'w2'"; none when both have the same model.
std::optional<std::string> first_difference(const NodeModel& a, const NodeModel& b);

}  // namespace dpwa

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// The form in which a gradient travels. The numbers travel on the wire: never renumber.
enum class Compression : std::uint8_t {
  none = 0,     // as it is
  fp16 = 1,     // fp32 and fp64 as IEEE 754 binary16, clamped to its range
  two_bit = 2,  // -t, 0 or +t, with one threshold t for all elements of a slice
};

struct CompressionOptions {
  Compression type = Compression::none;
  // The threshold of two_bit. 0: automatic_factor x the root mean square of each gradient. A fixed
  // threshold far above the gradients delays them for many steps.
  double threshold = 0;
  double automatic_factor = 2;

  bool operator==(const CompressionOptions&) const = default;
};

// What is wrong with the options, in a text that names the option; none when they are valid.
std::optional<std::string> compression_problem(const CompressionOptions& options);

// "none", "fp16" and "2bit", as in the cluster file.
std::string_view name_of(Compression type);

// The form in which values of `dtype` travel. fp16 would not make fp16 and bf16 smaller, so those
// are not compressed.
constexpr Compression compression_of(Compression type, DType dtype) {
  const bool wide = dtype == DType::float32 || dtype == DType::float64;
  return type == Compression::fp16 && !wide ? Compression::none : type;
}

// The bytes of `elements` elements in a form of compression_of():
//   none      the elements, little-endian
//   fp16      u16 for each element
//   two_bit   f32 threshold (0: every element is 0), then a u32 for every 16 elements: element i
//             has bits 2i and 2i + 1 of its word; 0 and 1 are 0, 2 is -threshold, 3 is +threshold.
//             Bits without an element are 0.
std::uint64_t compressed_bytes(Compression type, DType dtype, std::uint64_t elements);

// Compresses the gradients of one slice, one after the other. What a gradient loses in the form it
// travels in is kept as a residual and added to the next one: the sum of all that was sent, plus
// the residual, is the sum of all gradients, to the rounding of fp32. One owner, one thread.
class Compressor {
 public:
  // Throws std::invalid_argument for options with a problem.
  Compressor(const CompressionOptions& options, DType dtype, std::uint64_t elements);

  // From now on; the residual stays, but for a form that loses nothing. Throws
  // std::invalid_argument for options with a problem.
  void change(const CompressionOptions& options);

  // The form in which compress() writes.
  Compression type() const { return type_; }
  // The number of bytes that compress() writes.
  std::uint64_t bytes() const { return compressed_bytes(type_, dtype_, elements_); }

  // Writes the gradient plus the residual to `out`, which has bytes(). Throws std::invalid_argument
  // for other lengths. Returns false for a gradient that is not finite: `out` is then not finite
  // either, so that a receiver refuses it, and the residual stays as it was; or where the gradient
  // and the residual have become too large for fp32 together: then the residual is dropped.
  bool compress(std::span<const std::byte> gradient, std::span<std::byte> out);

  // fp32; empty for Compression::none.
  std::span<const float> residual() const { return residual_; }

 private:
  friend struct InvariantTest<Compressor>;
  bool compress_fp16(std::span<const std::byte> gradient, std::span<std::byte> out);
  bool compress_two_bit(std::span<const std::byte> gradient, double squares,
                        std::span<std::byte> out);
  bool refuse(std::span<std::byte> out) const;

  CompressionOptions options_;
  DType dtype_;
  std::uint64_t elements_;
  Compression type_;
  std::vector<float> residual_;
};

// A gradient as it has arrived, or as it lies in the memory of a worker of this host.
struct Contribution {
  Compression type = Compression::none;
  std::span<const std::byte> bytes;
  double weight = 1;
};

// sum = (onto ? sum : 0) + Σ weight x gradient, added in this order: the same contributions in the
// same order give the same bits, in whatever portions they are added. The gradients are of `dtype`;
// `sum` has elements of computed_in(dtype). Returns whether every element of the sum is finite;
// else what `sum` holds is of no use. Throws std::invalid_argument for lengths that do not fit.
bool add_up(DType dtype, std::span<std::byte> sum, std::span<const Contribution> contributions,
            bool onto = false);

}  // namespace dpwa::kvstore

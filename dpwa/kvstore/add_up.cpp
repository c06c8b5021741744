#include <array>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <stdexcept>

#include "dpwa/kvstore/compression.h"
#include "interpolation/kernels/portions.h"
#include "interpolation/kernels/updates.h"

namespace dpwa::kvstore {
namespace {

// How many contributions that need no decoding are added in one pass. Most clusters have fewer
// workers on one host.
constexpr std::size_t most_parts = 32;

void check_lengths(DType dtype, std::size_t elements, std::span<const Contribution> contributions) {
  for (const Contribution& one : contributions) {
    const std::uint64_t expected = compressed_bytes(one.type, dtype, elements);
    if (one.bytes.size() == expected) continue;
    throw std::invalid_argument("a gradient of " + std::to_string(one.bytes.size()) +
                                " bytes, compression " + std::string(name_of(one.type)) +
                                ", for a sum of " + std::to_string(elements) + " elements");
  }
}

// Adds all contributions that need no decoding in one pass.
bool add_plain(DType dtype, std::span<std::byte> sum, std::span<const Contribution> contributions,
               bool onto) {
  bool finite = true;
  do {
    const std::size_t count = std::min(contributions.size(), most_parts);
    std::array<const std::byte*, most_parts> parts{};
    std::array<double, most_parts> weights{};
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = contributions[i].bytes.data();
      weights[i] = contributions[i].weight;
    }
    finite = kernels::sum(dtype, sum, std::span(parts).first(count),
                          std::span(weights).first(count), onto);
    contributions = contributions.subspan(count);
    onto = true;
  } while (!contributions.empty());
  return finite;
}

float threshold_of(const Contribution& one) {
  return boost::endian::endian_load<float, sizeof(float), boost::endian::order::little>(
      reinterpret_cast<const unsigned char*>(one.bytes.data()));
}

// Reads the values from element `from` on, as fp32. Returns false when they are not finite.
bool decode(const Contribution& one, std::size_t from, std::size_t count,
            kernels::FloatPortion& values) {
  if (one.type == Compression::fp16) {
    values.widen(DType::float16, one.bytes.data() + 2 * from, count);
    return true;
  }
  const float threshold = threshold_of(one);
  if (!std::isfinite(threshold) || threshold < 0) return false;
  if (threshold == 0) {
    std::ranges::fill(values.bytes(count), std::byte{});
    return true;
  }
  const auto codes = one.bytes.subspan(sizeof threshold + kernels::two_bit_bytes(from),
                                       kernels::two_bit_bytes(count));
  kernels::give_two_bit_values(values.bytes(count), codes, threshold);
  return true;
}

// Computes one portion of a sum.
bool add_portion(DType dtype, std::span<std::byte> sum, std::span<const Contribution> contributions,
                 std::size_t from, bool onto) {
  const std::size_t count = sum.size() / size_of(computed_in(dtype));
  kernels::FloatPortion floats;
  std::array<double, kernels::portion_elements> doubles;
  bool finite = true;
  for (const Contribution& one : contributions) {
    const double weight = one.weight;
    const std::byte* part = one.bytes.data() + from * size_of(dtype);
    DType part_type = dtype;
    if (one.type != Compression::none) {
      if (!decode(one, from, count, floats)) return false;
      part = floats.bytes(count).data();
      part_type = DType::float32;
      if (dtype == DType::float64) {
        for (std::size_t i = 0; i < count; ++i) doubles[i] = floats[i];
        part = reinterpret_cast<const std::byte*>(doubles.data());
        part_type = DType::float64;
      }
    }
    finite = kernels::sum(part_type, sum, {&part, 1}, {&weight, 1}, onto);
    onto = true;
  }
  return finite;
}

}  // namespace

bool add_up(DType dtype, std::span<std::byte> sum, std::span<const Contribution> contributions,
            bool onto) {
  const std::size_t size = size_of(computed_in(dtype));
  const std::size_t elements = sum.size() / size;
  check_lengths(dtype, elements, contributions);
  if (std::ranges::all_of(contributions,
                          [](const Contribution& one) { return one.type == Compression::none; }))
    return add_plain(dtype, sum, contributions, onto);
  bool finite = true;
  kernels::for_each_portion(elements, [&](std::size_t from, std::size_t count) {
    finite =
        add_portion(dtype, sum.subspan(from * size, count * size), contributions, from, onto) &&
        finite;
  });
  return finite;
}

}  // namespace dpwa::kvstore

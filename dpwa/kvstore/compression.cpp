#include "dpwa/kvstore/compression.h"

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "dpwa/base/invariant.h"
#include "interpolation/kernels/encoding.h"
#include "interpolation/kernels/portions.h"
#include "interpolation/kernels/updates.h"

namespace dpwa::kvstore {
namespace {

constexpr std::pair<Compression, std::string_view> compression_names[] = {
    {Compression::none, "none"}, {Compression::fp16, "fp16"}, {Compression::two_bit, "2bit"}};

void store_threshold(std::span<std::byte> out, float threshold) {
  boost::endian::endian_store<float, sizeof threshold, boost::endian::order::little>(
      reinterpret_cast<unsigned char*>(out.data()), threshold);
}

struct Measure {
  double squares = 0;  // sum of the squares; infinite when the gradients are too large for it
  bool finite = true;
};

// The measure of the gradient as fp32.
Measure measure(DType dtype, std::span<const std::byte> gradient) {
  Measure total;
  kernels::FloatPortion floats, zeros;
  kernels::for_each_portion(
      gradient.size() / size_of(dtype), [&](std::size_t from, std::size_t count) {
        const auto values = floats.widen(dtype, gradient.data() + from * size_of(dtype), count);
        // The target of the copy is its source: only the statistics are wanted.
        std::array<std::byte, sizeof(kernels::FloatPortion)> copy;
        const kernels::PassStats stats = kernels::land_copy(
            DType::float32, std::span(copy).first(values.size()), values, zeros.bytes(count));
        total.squares += stats.squared_distance;
        total.finite = total.finite && stats.finite;
      });
  return total;
}

}  // namespace

std::string_view name_of(Compression type) {
  const auto* const found =
      std::ranges::find(compression_names, type, [](const auto& pair) { return pair.first; });
  return found == std::end(compression_names) ? "unknown" : found->second;
}

std::optional<std::string> compression_problem(const CompressionOptions& options) {
  if (name_of(options.type) == "unknown") return "an unknown form of compression";
  const auto accepted = [](double value, double least) {
    return std::isfinite(value) && value >= least &&
           value <= static_cast<double>(std::numeric_limits<float>::max());
  };
  if (options.threshold != 0 && !accepted(options.threshold, std::numeric_limits<float>::min())) {
    return "2bit: threshold is " + std::to_string(options.threshold) +
           "; accepted: a positive number, or 0 for an automatic one";
  }
  if (!accepted(options.automatic_factor, std::numeric_limits<float>::min())) {
    return "2bit: automatic_factor is " + std::to_string(options.automatic_factor) +
           "; accepted: a positive number";
  }
  return std::nullopt;
}

std::uint64_t compressed_bytes(Compression type, DType dtype, std::uint64_t elements) {
  if (type == Compression::fp16) return 2 * elements;
  if (type == Compression::two_bit) return sizeof(float) + kernels::two_bit_bytes(elements);
  return elements * size_of(dtype);
}

Compressor::Compressor(const CompressionOptions& options, DType dtype, std::uint64_t elements)
    : options_(options),
      dtype_(dtype),
      elements_(elements),
      type_(compression_of(options.type, dtype)) {
  if (const auto problem = compression_problem(options)) throw std::invalid_argument(*problem);
  if (type_ != Compression::none) residual_.resize(elements);
}

void Compressor::change(const CompressionOptions& options) {
  if (const auto problem = compression_problem(options)) throw std::invalid_argument(*problem);
  options_ = options;
  type_ = compression_of(options.type, dtype_);
  residual_.resize(type_ == Compression::none ? 0 : elements_);
}

bool Compressor::compress(std::span<const std::byte> gradient, std::span<std::byte> out) {
  if (gradient.size() != elements_ * size_of(dtype_) || out.size() != bytes()) {
    throw std::invalid_argument("a gradient of " + std::to_string(gradient.size()) +
                                " bytes compressed into " + std::to_string(out.size()) + ", not " +
                                std::to_string(elements_ * size_of(dtype_)) + " into " +
                                std::to_string(bytes()));
  }
  const Measure measured = measure(dtype_, gradient);
  if (type_ == Compression::none) {
    std::ranges::copy(gradient, out.begin());
    return measured.finite;
  }
  if (!measured.finite) return refuse(out);
  DPWA_INVARIANT(residual_.size() == elements_, "each element has a residual", residual_.size(),
                 elements_, type_);
  const bool sent = type_ == Compression::fp16 ? compress_fp16(gradient, out)
                                               : compress_two_bit(gradient, measured.squares, out);
  if (sent) return true;
  std::ranges::fill(residual_, 0.f);
  return refuse(out);
}

bool Compressor::refuse(std::span<std::byte> out) const {
  std::ranges::fill(out, std::byte{});
  if (out.empty()) return false;
  if (type_ == Compression::two_bit) {
    store_threshold(out, std::numeric_limits<float>::quiet_NaN());
  } else {
    out[1] = std::byte{0x7e};  // a NaN in fp16
  }
  return false;
}

bool Compressor::compress_fp16(std::span<const std::byte> gradient, std::span<std::byte> out) {
  bool finite = true;
  kernels::FloatPortion floats;
  kernels::for_each_portion(elements_, [&](std::size_t from, std::size_t count) {
    const auto values = floats.widen(dtype_, gradient.data() + from * size_of(dtype_), count);
    const auto residual = std::as_writable_bytes(std::span(residual_).subspan(from, count));
    const std::span<std::byte> sent = out.subspan(2 * from, 2 * count);
    finite = kernels::add_part(DType::float32, residual, values, 1) && finite;
    kernels::encode(DType::float32, Codec::fp16, sent, residual);
    kernels::add_part(DType::float16, residual, sent, -1);
  });
  return finite;
}

bool Compressor::compress_two_bit(std::span<const std::byte> gradient, double squares,
                                  std::span<std::byte> out) {
  double wanted = options_.threshold;
  if (wanted == 0 && elements_ > 0) {
    wanted = options_.automatic_factor * std::sqrt(squares / static_cast<double>(elements_));
  }
  constexpr double most = std::numeric_limits<float>::max();
  auto threshold = static_cast<float>(std::min(wanted, most));
  // After a gradient of zeros, or of numbers whose squares vanish, nothing is sent.
  if (threshold < std::numeric_limits<float>::min()) threshold = 0;
  store_threshold(out, threshold);
  const std::span<std::byte> codes = out.subspan(sizeof threshold);
  bool finite = true;
  kernels::FloatPortion floats;
  kernels::for_each_portion(elements_, [&](std::size_t from, std::size_t count) {
    const auto values = floats.widen(dtype_, gradient.data() + from * size_of(dtype_), count);
    const auto residual = std::as_writable_bytes(std::span(residual_).subspan(from, count));
    const std::span<std::byte> words =
        codes.subspan(kernels::two_bit_bytes(from), kernels::two_bit_bytes(count));
    if (threshold > 0) {
      kernels::take_two_bit_codes(words, residual, values, threshold);
      finite = kernels::sum(DType::float32, residual, {}, {}, /*onto=*/true) && finite;
    } else {
      std::ranges::fill(words, std::byte{});
      finite = kernels::add_part(DType::float32, residual, values, 1) && finite;
    }
  });
  return finite;
}

}  // namespace dpwa::kvstore

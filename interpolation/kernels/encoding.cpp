#include "interpolation/kernels/encoding.h"

#include <stdexcept>
#include <string>

#include "interpolation/kernels/variants.h"

namespace dpwa::kernels {
namespace {

const EncodedKernels& passes_for(DType dtype, Codec codec) {
  if (!encodes(codec, dtype)) {
    throw std::invalid_argument(std::string(name_of(dtype)) + " is not encoded as " +
                                std::string(name_of(codec)));
  }
  return encoded_kernels(*selected_variant().kernels, dtype, codec);
}

// Number of elements; checked, because a wrong length would write past a buffer.
std::size_t elements(DType dtype, Codec codec, std::size_t bytes, std::size_t encoded) {
  if (bytes % size_of(dtype) != 0 || encoded_bytes(dtype, codec, bytes) != encoded) {
    throw std::invalid_argument(std::to_string(encoded) + " bytes of " +
                                std::string(name_of(codec)) + " for " + std::to_string(bytes) +
                                " bytes of " + std::string(name_of(dtype)));
  }
  return bytes / size_of(dtype);
}

std::size_t elements(DType dtype, Codec codec, std::span<const std::byte> landing,
                     std::span<const std::byte> encoded, std::span<const std::byte> own) {
  if (landing.size() != own.size()) {
    throw std::invalid_argument("a landing of " + std::to_string(landing.size()) +
                                " bytes on a model of " + std::to_string(own.size()));
  }
  return elements(dtype, codec, own.size(), encoded.size());
}

}  // namespace

const EncodedKernels& encoded_kernels(const KernelTable& table, DType dtype, Codec codec) {
  const EncodedTable& encoded = table.encoded;
  if (dtype == DType::float16) return encoded.float16_int8;
  if (dtype == DType::bfloat16) return encoded.bfloat16_int8;
  const bool wide = dtype == DType::float64;
  if (codec == Codec::fp16) return wide ? encoded.float64_fp16 : encoded.float32_fp16;
  if (codec == Codec::bf16) return wide ? encoded.float64_bf16 : encoded.float32_bf16;
  return wide ? encoded.float64_int8 : encoded.float32_int8;
}

void encode(DType dtype, Codec codec, std::span<std::byte> out, std::span<const std::byte> values) {
  const EncodedKernels& passes = passes_for(dtype, codec);
  const std::size_t count = elements(dtype, codec, values.size(), out.size());
  passes.encode(out.data(), values.data(), count);
}

PassStats land_encoded_difference(DType dtype, Codec codec, std::span<std::byte> landing,
                                  std::span<const std::byte> encoded,
                                  std::span<const std::byte> own, Stores stores) {
  const EncodedKernels& passes = passes_for(dtype, codec);
  const std::size_t count = elements(dtype, codec, landing, encoded, own);
  const auto pass =
      streams(stores, landing.data()) ? passes.land_difference_streaming : passes.land_difference;
  const RawStats stats = pass(landing.data(), encoded.data(), own.data(), count);
  return {stats.squared_distance, stats.finite};
}

PassStats land_encoded_copy(DType dtype, Codec codec, std::span<std::byte> landing,
                            std::span<const std::byte> encoded, std::span<const std::byte> own) {
  const EncodedKernels& passes = passes_for(dtype, codec);
  const std::size_t count = elements(dtype, codec, landing, encoded, own);
  const RawStats stats = passes.land_copy(landing.data(), encoded.data(), own.data(), count);
  return {stats.squared_distance, stats.finite};
}

}  // namespace dpwa::kernels

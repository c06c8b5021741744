#include "interpolation/kernels/updates.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "interpolation/kernels/variants.h"

namespace dpwa::kernels {
namespace {

const UpdateTable& update_passes() {
  static const UpdateTable& table = supported_variants().front().kernels->updates;
  return table;
}

const UpdateKernels& update_passes_for(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return update_passes().float32;
    case DType::float64:
      return update_passes().float64;
    case DType::float16:
      return update_passes().float16;
    case DType::bfloat16:
      return update_passes().bfloat16;
    default:
      break;
  }
  throw std::invalid_argument("a sum or update of " + std::string(name_of(dtype)));
}

std::size_t wide_size(DType dtype) {
  return dtype == DType::float64 ? 8 : 4;
}

std::size_t summed_elements(DType dtype, std::size_t sum_bytes) {
  const std::size_t size = wide_size(dtype);
  if (sum_bytes % size != 0) {
    throw std::invalid_argument("a sum of " + std::to_string(sum_bytes) + " bytes for " +
                                std::string(name_of(dtype)));
  }
  return sum_bytes / size;
}

std::size_t coded_elements(std::size_t bytes, std::size_t code_bytes, float threshold) {
  if (bytes % sizeof(float) != 0 || two_bit_bytes(bytes / sizeof(float)) != code_bytes) {
    throw std::invalid_argument(std::to_string(code_bytes) + " bytes of two-bit codes for " +
                                std::to_string(bytes) + " bytes of float32");
  }
  if (!std::isfinite(threshold) || threshold <= 0)
    throw std::invalid_argument("two-bit codes of a threshold that is not positive and finite");
  return bytes / sizeof(float);
}

}  // namespace

bool sum(DType dtype, std::span<std::byte> sum, std::span<const std::byte* const> parts,
         std::span<const double> weights, bool onto) {
  const UpdateKernels& passes = update_passes_for(dtype);
  if (parts.size() != weights.size()) {
    throw std::invalid_argument(std::to_string(weights.size()) + " weights for a sum of " +
                                std::to_string(parts.size()) + " parts");
  }
  return passes.sum(sum.data(), parts.data(), weights.data(), parts.size(),
                    summed_elements(dtype, sum.size()), onto);
}

void update(Update update, DType dtype, std::span<std::byte> values, std::span<const std::byte> sum,
            std::span<std::byte* const> state, const UpdateTerms& terms) {
  const UpdateKernels& passes = update_passes_for(dtype);
  const std::size_t count = summed_elements(dtype, sum.size());
  if (values.size() != count * size_of(dtype) || state.size() != state_count(update)) {
    throw std::invalid_argument("an update of " + std::to_string(values.size()) + " bytes of " +
                                std::string(name_of(dtype)) + " by " + std::to_string(count) +
                                " elements with " + std::to_string(state.size()) + " states");
  }
  passes.update[static_cast<std::size_t>(update)](values.data(), sum.data(), state.data(), count,
                                                  terms);
}

void take_two_bit_codes(std::span<std::byte> codes, std::span<std::byte> residual,
                        std::span<const std::byte> values, float threshold) {
  const std::size_t count = coded_elements(values.size(), codes.size(), threshold);
  if (residual.size() != values.size()) {
    throw std::invalid_argument("a residual of " + std::to_string(residual.size()) +
                                " bytes for values of " + std::to_string(values.size()));
  }
  update_passes().take_codes(codes.data(), residual.data(), values.data(), count, threshold);
}

void give_two_bit_values(std::span<std::byte> values, std::span<const std::byte> codes,
                         float threshold) {
  const std::size_t count = coded_elements(values.size(), codes.size(), threshold);
  update_passes().give_values(values.data(), codes.data(), count, threshold);
}

}  // namespace dpwa::kernels

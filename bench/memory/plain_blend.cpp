#include "bench/memory/plain_blend.h"

namespace dpwa::bench {
namespace {

const float* floats(std::span<const std::byte> bytes) {
  return reinterpret_cast<const float*>(bytes.data());
}
float* floats(std::span<std::byte> bytes) {
  return reinterpret_cast<float*>(bytes.data());
}

}  // namespace

void plain_blend(std::span<std::byte> target, std::span<const std::byte> own,
                 std::span<const std::byte> peer, float factor) {
  float* __restrict out = floats(target);
  const float* __restrict x = floats(own);
  const float* __restrict y = floats(peer);
  const std::size_t count = target.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) out[i] = x[i] + factor * (y[i] - x[i]);
}

void plain_delta(std::span<std::byte> x, std::span<const std::byte> difference, float factor) {
  float* __restrict values = floats(x);
  const float* __restrict change = floats(difference);
  const std::size_t count = x.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) values[i] += factor * change[i];
}

void plain_delta_and_copy(std::span<std::byte> x, std::span<const std::byte> difference,
                          float factor, std::span<std::byte> copy) {
  float* __restrict values = floats(x);
  const float* __restrict change = floats(difference);
  float* __restrict out = floats(copy);
  const std::size_t count = x.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) out[i] = values[i] += factor * change[i];
}

}  // namespace dpwa::bench

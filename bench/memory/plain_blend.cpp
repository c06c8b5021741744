#include "bench/memory/plain_blend.h"

namespace dpwa::bench {
namespace {

inline const float* floats(std::span<const std::byte> bytes) {
  return reinterpret_cast<const float*>(bytes.data());
}
inline float* floats(std::span<std::byte> bytes) {
  return reinterpret_cast<float*>(bytes.data());
}

[[gnu::always_inline]] inline void difference_loop(std::span<std::byte> difference,
                                                   std::span<const std::byte> peer,
                                                   std::span<const std::byte> own) {
  float* __restrict out = floats(difference);
  const float* __restrict x = floats(own);
  const float* __restrict y = floats(peer);
  const std::size_t count = difference.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) out[i] = y[i] - x[i];
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void difference_avx2(std::span<std::byte> difference,
                                             std::span<const std::byte> peer,
                                             std::span<const std::byte> own) {
  difference_loop(difference, peer, own);
}
#endif

}  // namespace

void plain_blend(std::span<std::byte> target, std::span<const std::byte> own,
                 std::span<const std::byte> peer, float factor) {
  float* __restrict out = floats(target);
  const float* __restrict x = floats(own);
  const float* __restrict y = floats(peer);
  const std::size_t count = target.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) out[i] = x[i] + factor * (y[i] - x[i]);
}

void plain_difference(std::span<std::byte> difference, std::span<const std::byte> peer,
                      std::span<const std::byte> own) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return difference_avx2(difference, peer, own);
#endif
  difference_loop(difference, peer, own);
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

#include "dpwa/snapshot/sketch.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "dpwa/base/random.h"

using namespace dpwa;

namespace {

constexpr std::uint64_t elements = 5000;

Manifest manifest_of(DType dtype) {
  return Manifest({{"w", dtype, BlendRule::interpolate, {elements}},
                   {"n", DType::int64, BlendRule::maximum, {3}}});
}

std::vector<std::byte> normal(const Manifest& manifest, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> model(manifest.total_bytes());
  for (std::uint64_t i = 0; i < elements; ++i) {
    const auto value = static_cast<float>(random.normal(0, 1));
    std::memcpy(model.data() + i * sizeof value, &value, sizeof value);
  }
  return model;
}

}  // namespace

TEST_CASE("a sketch tells the norm of a model and the distance of two") {
  const Manifest manifest = manifest_of(DType::float32);
  double squares = 0;
  constexpr int models = 50;
  for (int i = 0; i < models; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const ModelSketch one = sketch_of(manifest, normal(manifest, 2 * seed));
    const ModelSketch other = sketch_of(manifest, normal(manifest, 2 * seed + 1));
    const double ratio = one.distance(other) / std::sqrt(2.0 * elements);
    CHECK(ratio > 0.5);
    CHECK(ratio < 1.5);
    squares += ratio * ratio;
    CHECK(one.norm() == doctest::Approx(std::sqrt(1.0 * elements)).epsilon(0.5));
    CHECK(one.distance(one) == 0);
  }
  CHECK(squares / models == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("equal values have distance 0 whatever the type, and counters do not count") {
  const Manifest doubles = manifest_of(DType::float64);
  const Manifest halves = manifest_of(DType::bfloat16);
  std::vector<std::byte> a(doubles.total_bytes());
  std::vector<std::byte> b(halves.total_bytes());
  for (std::uint64_t i = 0; i < elements; ++i) {
    const double value = 1.5;
    const std::uint16_t bits = 0x3fc0;  // 1.5
    std::memcpy(a.data() + i * sizeof value, &value, sizeof value);
    std::memcpy(b.data() + i * sizeof bits, &bits, sizeof bits);
  }
  const ModelSketch sketch = sketch_of(doubles, a);
  CHECK(sketch.norm() > 0);
  CHECK(sketch_of(halves, b) == sketch);
  a[doubles.offset_of(1)] = std::byte{1};
  CHECK(sketch_of(doubles, a) == sketch);
}

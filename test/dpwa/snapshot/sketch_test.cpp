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

std::vector<std::byte> normal(const Manifest& manifest, std::uint64_t seed,
                              std::uint64_t every = 1) {
  Random random(seed);
  std::vector<std::byte> model(manifest.total_bytes());
  for (std::uint64_t i = 0; i < elements; i += every) {
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
    CHECK(ratio > 0.75);
    CHECK(ratio < 1.25);
    squares += ratio * ratio;
    CHECK(one.norm() == doctest::Approx(std::sqrt(1.0 * elements)).epsilon(0.25));
    CHECK(one.distance(one) == 0);
  }
  CHECK(squares / models == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("at least 95 % of the distances are within 10 % of the true ones, whatever differs") {
  const Manifest manifest = manifest_of(DType::float32);
  for (const std::uint64_t every : {1, 3, 64, 256}) {  // one column of a matrix, too
    CAPTURE(every);
    int near = 0;
    constexpr int models = 400;
    for (std::uint64_t seed = 0; seed < models; ++seed) {
      const auto model = normal(manifest, seed, every);
      double squares = 0;
      for (std::uint64_t i = 0; i < elements; ++i) {
        float value;
        std::memcpy(&value, model.data() + i * sizeof value, sizeof value);
        squares += double{value} * value;
      }
      const double ratio = sketch_of(manifest, model).norm() / std::sqrt(squares);
      near += std::abs(ratio - 1) <= 0.1 ? 1 : 0;
    }
    CHECK(near >= 0.95 * models);
  }
}

TEST_CASE("a sketch has the same bits whatever the pieces of its pass are") {
  const Manifest manifest({{"a", DType::float32, BlendRule::interpolate, {2500}},
                           {"n", DType::int64, BlendRule::maximum, {3}},
                           {"b", DType::float32, BlendRule::interpolate, {70}}});
  std::vector<std::byte> model(manifest.total_bytes());
  for (std::size_t i = 0; i < model.size(); i += 4) {
    const auto value = static_cast<float>(i);
    std::memcpy(model.data() + i, &value, sizeof value);
  }
  for (const std::size_t piece : {1, 1024, 1025}) {
    SketchPass pass(manifest, model);
    std::size_t pieces = 1;
    while (pass.advance(piece)) ++pieces;
    CHECK(pieces > 1);
    CHECK(pass.result() == sketch_of(manifest, model));
  }
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

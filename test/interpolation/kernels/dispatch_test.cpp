#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "interpolation/kernels/kernels.h"
#include "interpolation/kernels/variants.h"
#include "test/interpolation/kernels/reference.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

// Zeros of both signs, subnormals, infinities and NaN among ordinary elements.
Bytes awkward(DType dtype) {
  Bytes bytes = random_elements(dtype, 75, 31);
  if (size_of(dtype) == 2) {
    for (const std::uint16_t bits : {0x8000, 0x0001, 0x7c00, 0xff80, 0x7fff}) append(bytes, bits);
    return bytes;
  }
  using Limits = std::numeric_limits<double>;
  for (const double value : {-0.0, 1e-310, Limits::infinity(), Limits::quiet_NaN()}) {
    if (dtype == DType::float32) {
      append(bytes, static_cast<float>(value));
    } else {
      append(bytes, value);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("the fastest variant that the CPU supports serves the passes") {
  const auto variants = kernels::supported_variants();
  REQUIRE_FALSE(variants.empty());
  CHECK(kernels::instruction_set() == variants.front().name);
}

TEST_CASE("the passes give what the selected variant gives for every dtype") {
  for (const DType dtype : kFloatingTypes) {
    CAPTURE(name_of(dtype));
    const auto& passes = passes_of(kernels::supported_variants().front(), dtype);
    const std::size_t count = 333;
    const Bytes x = random_elements(dtype, count, 41), y = random_elements(dtype, count, 42);
    Bytes landing(x.size()), want(x.size());
    const kernels::PassStats stats = kernels::land_difference(dtype, landing, x, y);
    const kernels::RawStats raw = passes.land_difference(want.data(), x.data(), y.data(), count);
    CHECK(landing == want);
    CHECK(stats.squared_distance == raw.squared_distance);
    CHECK(stats.finite);

    CHECK(kernels::land_copy(dtype, landing, x, y).squared_distance == raw.squared_distance);
    CHECK(landing == x);

    Bytes blended = x;
    want = x;
    kernels::delta(dtype, blended, y, 0.3);
    passes.delta(want.data(), y.data(), count, 0.3);
    CHECK(blended == want);

    blended = x;
    want = x;
    kernels::lerp(dtype, blended, y, 0.3);
    passes.lerp(want.data(), y.data(), count, 0.3);
    CHECK(blended == want);
  }
}

TEST_CASE("factor 0 leaves every bit of x, whatever the peer") {
  for (const DType dtype : kFloatingTypes) {
    CAPTURE(name_of(dtype));
    const Bytes before = awkward(dtype);
    const Bytes infinite(before.rbegin(), before.rend());
    Bytes x = before;
    kernels::delta(dtype, x, infinite, 0);
    CHECK(x == before);
    kernels::lerp(dtype, x, infinite, 0);
    CHECK(x == before);
  }
}

TEST_CASE("lerp with factor 1 is the peer bit for bit, even over elements that are not finite") {
  for (const DType dtype : kFloatingTypes) {
    CAPTURE(name_of(dtype));
    Bytes x = awkward(dtype);
    const Bytes peer = random_elements(dtype, x.size() / size_of(dtype), 51);
    kernels::lerp(dtype, x, peer, 1);
    CHECK(x == peer);
    kernels::lerp(dtype, x, x, 1);
    CHECK(x == peer);
  }
}

TEST_CASE("delta with factor 1 takes the whole difference") {
  Bytes own, peer, landing(3 * sizeof(float));
  for (const float value : {1.0f, -2.5f, 0.0f}) append(own, value);
  for (const float value : {4.0f, 8.25f, -0.125f}) append(peer, value);
  kernels::land_difference(DType::float32, landing, peer, own);
  kernels::delta(DType::float32, own, landing, 1);
  CHECK(own == peer);
}

TEST_CASE("passes refuse integer dtypes, lengths that do not fit and factors that are not finite") {
  Bytes x(8), y(8), shorter(4), cut(7);
  CHECK_THROWS_AS(kernels::delta(DType::int32, x, y, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(kernels::lerp(DType::boolean, x, y, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(kernels::land_copy(DType::int64, x, y, y), std::invalid_argument);
  CHECK_THROWS_AS(kernels::delta(DType::float32, x, shorter, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(kernels::lerp(DType::float32, cut, cut, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(kernels::land_difference(DType::float32, x, y, shorter), std::invalid_argument);
  CHECK_THROWS_AS(kernels::land_copy(DType::float32, shorter, y, y), std::invalid_argument);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(kernels::delta(DType::float32, x, y, nan), std::invalid_argument);
  CHECK_THROWS_AS(kernels::lerp(DType::float32, x, y, nan), std::invalid_argument);
}

TEST_CASE(
    "the passes run with the instruction set that was chosen, and refuse one that is not there") {
  const std::string best(kernels::instruction_set());
  CHECK(best == kernels::supported_variants().front().name);
  const std::string least(kernels::supported_variants().back().name);
  kernels::use_instruction_set(least);
  CHECK(kernels::instruction_set() == least);
  CHECK(kernels::selected_variant().kernels == kernels::supported_variants().back().kernels);
  CHECK_THROWS_AS(kernels::use_instruction_set("avx9000"), std::invalid_argument);
  CHECK(kernels::instruction_set() == least);
  kernels::use_instruction_set(best);
}

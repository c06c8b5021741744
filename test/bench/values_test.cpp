#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/memory/plain_blend.h"
#include "bench/values.h"

using namespace dpwa;
using namespace dpwa::bench;

namespace {

std::vector<float> floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  fill_with_values(std::as_writable_bytes(std::span(values)), seed);
  return values;
}

}  // namespace

TEST_CASE("values are of either sign, from 1/16 to 1/8, and differ by seed") {
  const auto values = floats(1000, 1);
  for (const float value : values) {
    CHECK(std::abs(value) >= 0.0625F);
    CHECK(std::abs(value) < 0.125F);
  }
  CHECK(std::ranges::any_of(values, [](float value) { return value < 0; }));
  CHECK(std::ranges::any_of(values, [](float value) { return value > 0; }));
  CHECK(values != floats(1000, 2));
  CHECK(values == floats(1000, 1));
}

TEST_CASE("values of other dtypes have the same magnitudes") {
  std::vector<double> doubles(100);
  fill_with_values(std::as_writable_bytes(std::span(doubles)), 3, DType::float64);
  for (const double value : doubles) CHECK(std::abs(std::abs(value) - 0.09375) <= 0.03125);
  std::vector<std::uint16_t> halves(100);
  fill_with_values(std::as_writable_bytes(std::span(halves)), 3, DType::float16);
  for (const auto bits : halves) CHECK((bits & 0x7C00) == 0x2C00);  // 1/16 is 2^-4: 15 - 4 = 11
  fill_with_values(std::as_writable_bytes(std::span(halves)), 3, DType::bfloat16);
  for (const auto bits : halves) CHECK((bits & 0x7F80) == 0x3D80);  // 127 - 4 = 123
}

TEST_CASE("the loops by hand compute what they say") {
  std::vector<float> x = {1, 2, 3}, difference = {10, 20, 30}, copy(3), target(3);
  plain_blend(std::as_writable_bytes(std::span(target)), std::as_bytes(std::span(x)),
              std::as_bytes(std::span(difference)), 0.5F);
  CHECK(target == std::vector<float>{5.5F, 11, 16.5F});
  plain_delta(std::as_writable_bytes(std::span(x)), std::as_bytes(std::span(difference)), 0.5F);
  CHECK(x == std::vector<float>{6, 12, 18});
  plain_delta_and_copy(std::as_writable_bytes(std::span(x)), std::as_bytes(std::span(difference)),
                       1, std::as_writable_bytes(std::span(copy)));
  CHECK(x == std::vector<float>{16, 32, 48});
  CHECK(copy == x);
}

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "interpolation/kernels/updates.h"
#include "test/interpolation/kernels/reference.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

Bytes floats(const std::vector<float>& values) {
  Bytes bytes;
  for (const float value : values) append(bytes, value);
  return bytes;
}

float float_at(std::span<const std::byte> bytes, std::size_t i) {
  float value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("two-bit codes: the first value is in the lowest bits, and the last word is padded") {
  std::vector<float> values(17, 0.f);
  values[0] = 0.5f;    // exactly the threshold
  values[1] = -0.5f;   // exactly minus the threshold
  values[2] = 0.499f;  // below
  values[15] = -7.f;
  values[16] = 3.f;
  Bytes codes(8), residual(17 * 4);
  kernels::take_two_bit_codes(codes, residual, floats(values), 0.5f);
  std::uint32_t words[2];
  std::memcpy(words, codes.data(), sizeof words);
  CHECK(words[0] == (3u | 2u << 2 | 2u << 30));
  CHECK(words[1] == 3u);
  CHECK(float_at(residual, 0) == 0.f);
  CHECK(float_at(residual, 2) == 0.499f);
  CHECK(float_at(residual, 15) == -6.5f);
  CHECK(float_at(residual, 16) == 2.5f);
}

TEST_CASE("two-bit codes: every variant gives the rule's codes, residual and values") {
  const float threshold = 0.3f;
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    const kernels::UpdateTable& passes = variant.kernels->updates;
    for (const std::size_t count : {0, 1, 15, 16, 17, 31, 32, 48, 100, 1003}) {
      CAPTURE(variant.name);
      CAPTURE(count);
      std::vector<float> values(count), before(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = std::sin(static_cast<float>(i) * 1.7f);
        before[i] = 0.29f * std::cos(static_cast<float>(i) * 0.9f);
      }
      Placed codes(Bytes(kernels::two_bit_bytes(count)), 1), residual(floats(before), 2);
      const Bytes gradient = floats(values);
      passes.take_codes(codes.data(), residual.data(), gradient.data(), count, threshold);
      Placed sent(Bytes(count * 4), 3);
      passes.give_values(sent.data(), codes.data(), count, threshold);
      const Bytes left = residual.bytes(), given = sent.bytes();
      for (std::size_t i = 0; i < count; ++i) {
        const float value = before[i] + values[i];
        const float code = value >= threshold ? threshold : value <= -threshold ? -threshold : 0.f;
        CHECK(float_at(given, i) == code);
        CHECK(float_at(left, i) == value - code);
      }
      CHECK(codes.surroundings_untouched());
      CHECK(residual.surroundings_untouched());
      CHECK(sent.surroundings_untouched());
    }
  }
}

TEST_CASE("two-bit codes: lengths and thresholds that do not fit are refused") {
  Bytes values(20), residual(20), codes(4), shorter(16), longer(8);
  CHECK_NOTHROW(kernels::take_two_bit_codes(codes, residual, values, 1));
  CHECK_THROWS_AS(kernels::take_two_bit_codes(longer, residual, values, 1), std::invalid_argument);
  CHECK_THROWS_AS(kernels::take_two_bit_codes(codes, shorter, values, 1), std::invalid_argument);
  for (const float threshold : {0.f, -1.f, std::numeric_limits<float>::infinity()}) {
    CHECK_THROWS_AS(kernels::take_two_bit_codes(codes, residual, values, threshold),
                    std::invalid_argument);
    CHECK_THROWS_AS(kernels::give_two_bit_values(values, codes, threshold), std::invalid_argument);
  }
}

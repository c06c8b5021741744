#include "dpwa/kvstore/compression.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "dpwa/base/random.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {
namespace {

constexpr DType stored_types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16};

// Numbers as elements of `dtype`.
std::vector<std::byte> elements_of(DType dtype, const std::vector<double>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * size_of(dtype));
  if (dtype == DType::float64) {
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }
  const std::vector<float> floats(numbers.begin(), numbers.end());
  replace_values(dtype, bytes, std::as_bytes(std::span(floats)), 1);
  return bytes;
}

// The sum of the contributions as numbers; none when it is not finite.
std::optional<std::vector<double>> sum_of(DType dtype, std::size_t count,
                                          std::span<const Contribution> contributions) {
  if (computed_in(dtype) == DType::float64) {
    std::vector<double> sum(count);
    if (!add_up(dtype, std::as_writable_bytes(std::span(sum)), contributions)) return {};
    return sum;
  }
  std::vector<float> sum(count);
  if (!add_up(dtype, std::as_writable_bytes(std::span(sum)), contributions)) return {};
  return std::vector<double>(sum.begin(), sum.end());
}

std::vector<double> normal_numbers(std::size_t count, double deviation, Random& random) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = random.normal(0, deviation);
  return numbers;
}

struct Case {
  Compression type;
  double threshold;
};
constexpr Case cases[] = {
    {Compression::fp16, 0}, {Compression::two_bit, 0}, {Compression::two_bit, 0.5}};

TEST_CASE("compression: all that was sent, plus the residual, is the sum of the gradients") {
  for (const Case& one : cases) {
    for (const DType dtype : stored_types) {
      for (const std::size_t count : {1, 16, 1000, 3001}) {
        CAPTURE(name_of(one.type));
        CAPTURE(one.threshold);
        CAPTURE(name_of(dtype));
        CAPTURE(count);
        Random random(count);
        Compressor compressor({one.type, one.threshold}, dtype, count);
        std::vector<double> given(count), sent(count);
        double largest = 0;
        for (int step = 0; step < 40; ++step) {
          const auto gradient = elements_of(dtype, normal_numbers(count, 0.3, random));
          const Contribution plain{Compression::none, gradient};
          const auto exact = sum_of(dtype, count, {&plain, 1});
          std::vector<std::byte> out(compressor.bytes());
          REQUIRE(compressor.compress(gradient, out));
          const Contribution compressed{compressor.type(), out};
          const auto arrived = sum_of(dtype, count, {&compressed, 1});
          REQUIRE(exact);
          REQUIRE(arrived);
          for (std::size_t i = 0; i < count; ++i) {
            given[i] += (*exact)[i];
            sent[i] += (*arrived)[i];
            largest = std::max(largest, std::abs(given[i]));
          }
        }
        const auto residual = compressor.residual();
        double worst = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const double kept = residual.empty() ? 0 : residual[i];
          worst = std::max(worst, std::abs(sent[i] + kept - given[i]));
        }
        // 40 additions, each rounded to fp32 at the size of the largest residual.
        CHECK(worst <= 40 * 6e-8 * (1 + largest));
      }
    }
  }
}

TEST_CASE("compression: a gradient beyond fp16 is clamped, and the rest follows") {
  Compressor compressor({Compression::fp16}, DType::float32, 2);
  std::vector<std::byte> out(compressor.bytes());
  CHECK(compressor.compress(elements_of(DType::float32, {100000, -1}), out));
  const Contribution first{Compression::fp16, out};
  CHECK(sum_of(DType::float32, 2, {&first, 1}) == std::vector<double>{65504, -1});
  CHECK(compressor.compress(elements_of(DType::float32, {0, 0}), out));
  CHECK(sum_of(DType::float32, 2, {&first, 1}) == std::vector<double>{34496, 0});
  CHECK(compressor.residual()[0] == 0);
}

TEST_CASE("compression: two bits with a fixed threshold, byte for byte") {
  Compressor compressor({Compression::two_bit, 0.5}, DType::float32, 17);
  std::vector<double> gradient(17, 0.25);
  gradient[0] = 0.75;
  gradient[1] = -2;
  gradient[16] = 0.5;
  std::vector<std::byte> out(compressor.bytes());
  REQUIRE(out.size() == 12);
  CHECK(compressor.compress(elements_of(DType::float32, gradient), out));
  const std::vector<int> expected = {0, 0, 0, 0x3f, 0x0b, 0, 0, 0, 0x03, 0, 0, 0};
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::to_integer<int>(out[i]) == expected[i]);
  CHECK(compressor.residual()[0] == 0.25f);
  CHECK(compressor.residual()[1] == -1.5f);
  // What was kept back is sent as soon as it is enough.
  CHECK(compressor.compress(elements_of(DType::float32, gradient), out));
  CHECK(std::to_integer<int>(out[5]) == 0xff);
  CHECK(compressor.residual()[4] == 0);
}

TEST_CASE("compression: the automatic threshold follows the gradients, a fixed one does not") {
  Random random(7);
  for (const double scale : {1e-6, 1e-3, 1.0, 1e3}) {
    CAPTURE(scale);
    const std::size_t count = 4096;
    Compressor automatic({Compression::two_bit}, DType::float32, count);
    std::vector<std::byte> out(automatic.bytes());
    CHECK(
        automatic.compress(elements_of(DType::float32, normal_numbers(count, scale, random)), out));
    float threshold;
    std::memcpy(&threshold, out.data(), sizeof threshold);
    CHECK(threshold == doctest::Approx(2 * scale).epsilon(0.05));
    double sent = 0;
    const Contribution contribution{Compression::two_bit, out};
    const auto values = sum_of(DType::float32, count, {&contribution, 1});
    REQUIRE(values);
    for (const double value : *values) sent += value != 0;
    CHECK(sent / count == doctest::Approx(0.0455).epsilon(0.2));  // beyond two deviations
  }
}

TEST_CASE("compression: a gradient of zeros sends nothing and keeps the residual") {
  Compressor compressor({Compression::two_bit}, DType::float32, 16);
  std::vector<std::byte> out(compressor.bytes());
  std::vector<double> gradient(16, 0.0);
  gradient[3] = 1;
  CHECK(compressor.compress(elements_of(DType::float32, gradient), out));  // t = 0.5
  CHECK(compressor.residual()[3] == 0.5f);
  CHECK(compressor.compress(elements_of(DType::float32, std::vector<double>(16, 0.0)), out));
  CHECK(out == std::vector<std::byte>(8));
  CHECK(compressor.residual()[3] == 0.5f);
}

TEST_CASE("compression: a gradient that is not finite is refused and leaves the residual") {
  for (const Case& one : cases) {
    for (const DType dtype : stored_types) {
      CAPTURE(name_of(one.type));
      CAPTURE(name_of(dtype));
      Compressor compressor({one.type, one.threshold}, dtype, 2000);
      std::vector<std::byte> out(compressor.bytes());
      std::vector<double> numbers(2000, 0.1);
      CHECK(compressor.compress(elements_of(dtype, numbers), out));
      const std::vector<float> before(compressor.residual().begin(), compressor.residual().end());
      numbers[1999] = std::numeric_limits<double>::quiet_NaN();
      CHECK_FALSE(compressor.compress(elements_of(dtype, numbers), out));
      CHECK(std::vector<float>(compressor.residual().begin(), compressor.residual().end()) ==
            before);
      const Contribution contribution{compressor.type(), out};
      CHECK_FALSE(sum_of(dtype, 2000, {&contribution, 1}));
    }
  }
}

TEST_CASE("compression: a residual that overflows is dropped") {
  Compressor compressor({Compression::two_bit, 1}, DType::float32, 1);
  std::vector<std::byte> out(compressor.bytes());
  CHECK(compressor.compress(elements_of(DType::float32, {3e38}), out));
  CHECK_FALSE(compressor.compress(elements_of(DType::float32, {3e38}), out));
  CHECK(compressor.residual()[0] == 0);
}

TEST_CASE("compression: options and lengths that do not fit are refused in words") {
  CHECK_FALSE(compression_problem({Compression::two_bit}));
  CHECK(compression_problem({Compression::two_bit, -1}) ==
        "2bit: threshold is -1.000000; accepted: a positive number, or 0 for an automatic one");
  CHECK(compression_problem({Compression::two_bit, 0, 0}) ==
        "2bit: automatic_factor is 0.000000; accepted: a positive number");
  CHECK(compression_problem({Compression(9)}) == "an unknown form of compression");
  CHECK_THROWS_AS(Compressor({Compression::two_bit, -1}, DType::float32, 3), std::invalid_argument);
  CHECK(Compressor({Compression::fp16}, DType::bfloat16, 3).type() == Compression::none);
  Compressor compressor({Compression::fp16}, DType::float32, 3);
  std::vector<std::byte> gradient(12), out(6), wrong(8);
  CHECK_THROWS_AS(compressor.compress(wrong, out), std::invalid_argument);
  CHECK_THROWS_AS(compressor.compress(gradient, wrong), std::invalid_argument);
  const Contribution contribution{Compression::fp16, wrong};
  CHECK_THROWS_AS(sum_of(DType::float32, 3, {&contribution, 1}), std::invalid_argument);
}

TEST_CASE("sums: forms may differ, and the result does not depend on the portions") {
  Random random(5);
  for (const DType dtype : stored_types) {
    CAPTURE(name_of(dtype));
    const std::size_t count = 2500;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Contribution> contributions;
    bytes.reserve(40);
    for (int worker = 0; worker < 40; ++worker) {
      const Compression type = worker % 4 == 1   ? Compression::two_bit
                               : worker % 4 == 2 ? Compression::fp16
                                                 : Compression::none;
      const auto gradient = elements_of(dtype, normal_numbers(count, 1, random));
      Compressor compressor({type}, dtype, count);
      bytes.emplace_back(compressor.bytes());
      CHECK(compressor.compress(gradient, bytes.back()));
      contributions.push_back({compressor.type(), bytes.back(), 0.5 + worker});
    }
    const auto at_once = sum_of(dtype, count, contributions);
    REQUIRE(at_once);
    const std::size_t size = size_of(computed_in(dtype));
    std::vector<std::byte> portions(count * size);
    bool onto = false;
    for (const Contribution& one : contributions) {
      CHECK(add_up(dtype, portions, {&one, 1}, onto));
      onto = true;
    }
    for (std::size_t i = 0; i < count; ++i) {
      float narrow;
      double wide;
      std::memcpy(&narrow, portions.data() + i * size, sizeof narrow);
      if (size == sizeof wide) std::memcpy(&wide, portions.data() + i * size, sizeof wide);
      CHECK((*at_once)[i] == (size == sizeof wide ? wide : narrow));
    }
  }
}

TEST_CASE("sums: many plain contributions are added in order") {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Contribution> contributions;
  double expected = 0;
  for (int worker = 0; worker < 70; ++worker) {
    bytes.push_back(elements_of(DType::float32, {worker + 0.5}));
    expected += 2 * (worker + 0.5);
  }
  for (const auto& one : bytes) contributions.push_back({Compression::none, one, 2});
  CHECK(sum_of(DType::float32, 1, contributions) == std::vector<double>{expected});
  CHECK(sum_of(DType::float32, 1, {}) == std::vector<double>{0});
}

}  // namespace
}  // namespace dpwa::kvstore

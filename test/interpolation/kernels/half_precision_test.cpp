#include <doctest/doctest.h>

#include <cstring>

#include "test/interpolation/kernels/reference.h"

// fp16 and bf16 over all of their 65536 patterns.

using namespace dpwa;
using namespace dpwa::test;

namespace {

constexpr DType kHalfTypes[] = {DType::float16, DType::bfloat16};
constexpr std::size_t kPatterns = 65536;

// Every pattern in turn, starting at `first`.
Bytes patterns(std::size_t first) {
  Bytes bytes;
  bytes.reserve(2 * kPatterns);
  for (std::size_t i = 0; i < kPatterns; ++i) append(bytes, static_cast<std::uint16_t>(first + i));
  return bytes;
}

std::uint16_t pattern_at(const Bytes& bytes, std::size_t index) {
  std::uint16_t bits;
  std::memcpy(&bits, &bytes[2 * index], sizeof bits);
  return bits;
}

template <class Check>
void for_each_variant(Check check) {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kHalfTypes) {
      CAPTURE(variant.name);
      CAPTURE(name_of(dtype));
      check(passes_of(variant, dtype), dtype);
    }
  }
}

}  // namespace

TEST_CASE("every 16-bit pattern survives the way to fp32 and back, NaN as some NaN") {
  for_each_variant([](const kernels::FloatingKernels& passes, DType dtype) {
    const Bytes all = patterns(0), zero(2 * kPatterns);
    Bytes landing(2 * kPatterns);
    passes.land_difference(landing.data(), all.data(), zero.data(), kPatterns);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kPatterns; ++i) {
      const bool nan = decode(dtype, &all[2 * i]) != decode(dtype, &all[2 * i]);
      const double landed = decode(dtype, &landing[2 * i]);
      wrong += nan ? landed == landed : pattern_at(landing, i) != pattern_at(all, i);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE(
    "half way between any two neighbours rounds to the even one, and over the top to infinity") {
  for_each_variant([](const kernels::FloatingKernels& passes, DType dtype) {
    const Bytes all = patterns(0), next = patterns(1);
    Bytes middle = all;
    passes.lerp(middle.data(), next.data(), kPatterns, 0.5);
    std::size_t wrong = 0, even = 0;
    for (std::size_t i = 0; i < kPatterns; ++i) {
      const double want =
          reference_lerp(dtype, decode(dtype, &all[2 * i]), decode(dtype, &next[2 * i]), 0.5);
      wrong += !same(decode(dtype, &middle[2 * i]), want);
      even += want == want && pattern_at(middle, i) % 2 == 0;
    }
    CHECK(wrong == 0);
    CHECK(even > 63000);  // so that the values compared were ties
  });
}

TEST_CASE("every 16-bit pattern blends and subtracts as the scalar arithmetic has it") {
  for_each_variant([](const kernels::FloatingKernels& passes, DType dtype) {
    const Bytes all = patterns(0);
    for (const std::size_t shift : {std::size_t{1}, std::size_t{777}, std::size_t{0x8001}}) {
      const Bytes other = patterns(shift);
      Bytes landing(2 * kPatterns), blended = all, mixed = all;
      passes.land_difference(landing.data(), all.data(), other.data(), kPatterns);
      passes.delta(blended.data(), other.data(), kPatterns, 0.3);
      passes.lerp(mixed.data(), other.data(), kPatterns, 0.3);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < kPatterns; ++i) {
        const double a = decode(dtype, &all[2 * i]), b = decode(dtype, &other[2 * i]);
        wrong += !same(decode(dtype, &landing[2 * i]), reference_difference(dtype, a, b));
        wrong += !same(decode(dtype, &blended[2 * i]), reference_delta(dtype, a, b, 0.3));
        wrong += !same(decode(dtype, &mixed[2 * i]), reference_lerp(dtype, a, b, 0.3));
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("a 16-bit peer element counts as finite exactly when it is") {
  for_each_variant([](const kernels::FloatingKernels& passes, DType dtype) {
    const Bytes all = patterns(0), zero(2);
    Bytes landing(2);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kPatterns; ++i) {
      const double value = decode(dtype, &all[2 * i]);
      const bool finite = value - value == 0;
      wrong += passes.land_difference(landing.data(), &all[2 * i], zero.data(), 1).finite != finite;
      wrong += passes.land_copy(landing.data(), &all[2 * i], zero.data(), 1).finite != finite;
    }
    CHECK(wrong == 0);
  });
}

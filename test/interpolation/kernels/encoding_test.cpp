#include "interpolation/kernels/encoding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "test/interpolation/kernels/encoded_reference.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

constexpr std::size_t kSizes[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 100, 1000, 4099};

// Runs `check(passes, encoding, variant)` over every variant and encoding.
template <class Check>
void for_each_encoding(Check check) {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const Encoding encoding : kEncodings) {
      CAPTURE(variant.name);
      CAPTURE(name_of(encoding.dtype));
      CAPTURE(name_of(encoding.codec));
      check(passes_of(variant, encoding), encoding);
    }
  }
}

Bytes encoded_by(const kernels::EncodedKernels& passes, Encoding encoding, const Bytes& values) {
  Bytes out(encoded_bytes(encoding.dtype, encoding.codec, values.size()));
  passes.encode(out.data(), values.data(), values.size() / size_of(encoding.dtype));
  return out;
}

void append_value(Bytes& bytes, DType dtype, double value) {
  if (dtype == DType::float64) return append(bytes, value);
  if (dtype == DType::float32) return append(bytes, static_cast<float>(value));
  const int exponent = std::isfinite(value) && value != 0 ? std::ilogb(value) : 0;
  if (dtype == DType::float16) {
    const int bits = std::isnan(value)   ? 0x7e00
                     : std::isinf(value) ? 0x7c00
                     : value == 0        ? 0
                     : exponent < -14    ? 1
                     : exponent > 15     ? 0x7bff
                                         : (exponent + 15) << 10;
    return append(bytes, static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0)));
  }
  const float single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  append(bytes, static_cast<std::uint16_t>(bits >> 16));
}

using Double = std::numeric_limits<double>;
using Single = std::numeric_limits<float>;

// Each stands in a block of its own, among small values that its unit must not depend on, and then
// all of those that are finite follow each other.
Bytes special_values(DType dtype) {
  const double values[] = {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           Double::infinity(),
                           -Double::infinity(),
                           Double::quiet_NaN(),
                           -Double::quiet_NaN(),
                           Single::denorm_min(),
                           -Single::denorm_min(),
                           Single::min(),
                           -Single::max(),
                           Single::max(),
                           0x1.fep127,
                           0x1.fdp127,
                           0x1.fc0002p127,
                           0x1.fcp127,
                           0x1.ffp127,  // halfway to overflow of bf16
                           0x1.fefffep127,
                           65504,
                           65519,  // the last that rounds down in fp16
                           65520,
                           -65536,
                           1e300,
                           -1e300,
                           Double::max(),
                           Double::denorm_min(),
                           0x1p-24,
                           0x1p-25,  // half of the smallest fp16 value: to even, 0
                           0x1.000002p-25,
                           0x1.8p-24,
                           0x1p-14,
                           127,
                           127.49,
                           127.5,
                           127.51,
                           128,
                           0x1.fcp0,
                           0x1.fc0002p0,
                           0x1p-126,
                           0x1p-119,
                           0x1p-120,
                           0x1p-133,
                           0x1p-134,
                           1 + 0x1p-11,
                           1 + 0x1.8p-10,
                           1 + 0x1p-8,
                           1 + 0x1.8p-7};
  Bytes bytes;
  for (const double value : values) {
    for (std::size_t i = 0; i < int8_block; ++i) append_value(bytes, dtype, i == 5 ? value : 0.0);
  }
  for (const double value : values) {
    if (std::isfinite(value)) append_value(bytes, dtype, value);
  }
  return bytes;
}

struct Landed {
  Bytes bytes;
  kernels::RawStats stats;
};

Landed land(const kernels::EncodedKernels& passes, Encoding encoding, const Bytes& encoded,
            const Bytes& own, bool difference) {
  Landed result{Bytes(own.size()), {}};
  const auto pass = difference ? passes.land_difference : passes.land_copy;
  result.stats =
      pass(result.bytes.data(), encoded.data(), own.data(), own.size() / size_of(encoding.dtype));
  return result;
}

// Whether `landed` is what scalar arithmetic makes of it, element by element.
bool lands_right(Encoding encoding, const Bytes& encoded, const Bytes& own, const Bytes& landed,
                 bool difference) {
  const std::size_t size = size_of(encoding.dtype);
  const auto peer = decode(encoding.codec, encoded, own.size() / size);
  for (std::size_t i = 0; i < peer.size(); ++i) {
    double want = peer[i].value;
    if (difference) {
      const double like =
          rounded_like(encoding, decode(encoding.dtype, &own[i * size]), peer[i].unit);
      want = reference_difference(DType::float32, peer[i].value, like);
    }
    if (!same(decode(encoding.dtype, &landed[i * size]), rounded(encoding.dtype, want)))
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("encoding gives the bytes of the scalar reference at any size and address") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    for (const std::size_t size : kSizes) {
      CAPTURE(size);
      const Bytes values = random_elements(encoding.dtype, size, 60 + size);
      const Bytes want = reference_encode(encoding, values);
      REQUIRE(want.size() == encoded_bytes(encoding.dtype, encoding.codec, values.size()));
      CHECK(want.size() <= values.size());
      for (const std::size_t offset : {0, 1, 17}) {
        Placed out(Bytes(want.size()), offset), from(values, 2 * offset);
        passes.encode(out.data(), from.data(), size);
        CHECK(out.bytes() == want);
        CHECK(out.surroundings_untouched());
      }
    }
  });
}

TEST_CASE("special values are encoded as the scalar reference has it") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    const Bytes values = special_values(encoding.dtype);
    const Bytes got = encoded_by(passes, encoding, values);
    CHECK(same_encoded(encoding.codec, got, reference_encode(encoding, values)));
  });
}

TEST_CASE("every 16-bit pattern is encoded to int8 as the scalar reference has it") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      CAPTURE(variant.name);
      CAPTURE(name_of(dtype));
      const Encoding encoding{dtype, Codec::int8};
      for (const unsigned stride : {1u, 0x1235u}) {  // alike in a block, and mixed
        Bytes values;
        for (unsigned i = 0; i < 65536; ++i) append(values, static_cast<std::uint16_t>(i * stride));
        const Bytes got = encoded_by(passes_of(variant, encoding), encoding, values);
        CHECK(got == reference_encode(encoding, values));
      }
    }
  }
}

TEST_CASE("fp32 halfway between neighbours rounds to the even one in fp16 and bf16") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    CAPTURE(variant.name);
    for (const Codec codec : {Codec::fp16, Codec::bf16}) {
      CAPTURE(name_of(codec));
      const Encoding encoding{DType::float32, codec};
      const int fraction_bits = codec == Codec::fp16 ? 10 : 7;
      Bytes values;
      for (int step = 0; step < 4096; ++step) {
        for (const double nudge : {-0x1p-30, 0.0, 0x1p-30}) {
          const double unit = std::ldexp(1.0, -fraction_bits);
          append(values, static_cast<float>(1 + step * unit / 2 + nudge * 128));
        }
      }
      const Bytes got = encoded_by(passes_of(variant, encoding), encoding, values);
      CHECK(got == reference_encode(encoding, values));
    }
  }
}

TEST_CASE("landing what is encoded gives the scalar result at any size and address") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    for (const std::size_t size : kSizes) {
      CAPTURE(size);
      const Bytes peer = random_elements(encoding.dtype, size, 70 + size);
      const Bytes own = random_elements(encoding.dtype, size, 80 + size);
      const Bytes encoded = encoded_by(passes, encoding, peer);
      for (const bool difference : {true, false}) {
        CAPTURE(difference);
        for (const std::size_t offset : {0, 1, 17}) {
          Placed landing(Bytes(own.size()), offset), from(encoded, 2 * offset),
              mine(own, 3 * offset);
          const auto pass = difference ? passes.land_difference : passes.land_copy;
          pass(landing.data(), from.data(), mine.data(), size);
          CHECK(lands_right(encoding, encoded, own, landing.bytes(), difference));
          CHECK(landing.surroundings_untouched());
        }
      }
    }
  });
}

TEST_CASE("special values land as the scalar arithmetic has it") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    const Bytes peer = special_values(encoding.dtype);
    const Bytes encoded = encoded_by(passes, encoding, peer);
    for (const bool difference : {true, false}) {
      CAPTURE(difference);
      // Against itself, against ordinary values, and against its own reverse.
      const std::size_t count = peer.size() / size_of(encoding.dtype);
      Bytes reverse;
      for (std::size_t i = count; i-- > 0;)
        append_bytes(reverse, &peer[i * size_of(encoding.dtype)], size_of(encoding.dtype));
      for (const Bytes& own : {peer, random_elements(encoding.dtype, count, 90), reverse}) {
        const Landed landed = land(passes, encoding, encoded, own, difference);
        CHECK(lands_right(encoding, encoded, own, landed.bytes, difference));
      }
    }
  });
}

TEST_CASE("every bit pattern that may arrive lands as the scalar arithmetic has it") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    Bytes encoded;
    std::size_t count = 0;
    if (encoding.codec == Codec::int8) {
      for (int exponent = 0; exponent < 256; ++exponent) {
        append(encoded, static_cast<std::uint8_t>(exponent));
        for (int i = 0; i < 16; ++i)
          append(encoded, static_cast<std::int8_t>(i == 0   ? -128
                                                   : i == 1 ? 127
                                                            : 17 * i + exponent));
      }
      count = 256 * 16;
    } else {
      for (int bits = 0; bits < 65536; ++bits) append(encoded, static_cast<std::uint16_t>(bits));
      count = 65536;
    }
    const Bytes own = random_elements(encoding.dtype, count, 91);
    for (const bool difference : {true, false}) {
      CAPTURE(difference);
      const Landed landed = land(passes, encoding, encoded, own, difference);
      CHECK(lands_right(encoding, encoded, own, landed.bytes, difference));
    }
  });
}

TEST_CASE("a node that equals its peer lands a difference of exactly zero") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    const Bytes own = random_elements(encoding.dtype, 5000, 92);
    const Landed landed = land(passes, encoding, encoded_by(passes, encoding, own), own, true);
    CHECK(landed.bytes == Bytes(own.size()));
    CHECK(landed.stats.squared_distance == 0);
    CHECK(landed.stats.finite);
  });
}

TEST_CASE("what one end gains by a difference the other end loses") {
  // Exactly so where both ends round alike; int8 does when their blocks have one unit.
  for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::int8}) {
    CAPTURE(name_of(codec));
    const Encoding encoding{DType::float32, codec};
    const auto& passes = passes_of(kernels::supported_variants().front(), encoding);
    Bytes a = random_elements(DType::float32, 4096, 93),
          b = random_elements(DType::float32, 4096, 94);
    for (Bytes* bytes : {&a, &b}) {
      for (std::size_t at = 0; at < bytes->size(); at += 4) {
        float value;
        std::memcpy(&value, &(*bytes)[at], 4);
        value = at % 64 == 0 ? 1.5f : std::fmod(value, 1.0f);
        std::memcpy(&(*bytes)[at], &value, 4);
      }
    }
    const Bytes gain = land(passes, encoding, encoded_by(passes, encoding, b), a, true).bytes;
    const Bytes loss = land(passes, encoding, encoded_by(passes, encoding, a), b, true).bytes;
    std::size_t wrong = 0, moved = 0;
    for (std::size_t at = 0; at < gain.size(); at += 4) {
      wrong += decode(DType::float32, &gain[at]) != -decode(DType::float32, &loss[at]);
      moved += decode(DType::float32, &gain[at]) != 0;
    }
    CHECK(wrong == 0);
    CHECK(moved > 3000);
  }
}

TEST_CASE("the squared distance is that of the scalar sum, and the same from every variant") {
  for (const Encoding encoding : kEncodings) {
    CAPTURE(name_of(encoding.dtype));
    CAPTURE(name_of(encoding.codec));
    const std::size_t count = 10007, size = size_of(encoding.dtype);
    const Bytes peer = random_elements(encoding.dtype, count, 95);
    const Bytes own = random_elements(encoding.dtype, count, 96);
    const auto variants = kernels::supported_variants();
    const Bytes encoded = encoded_by(passes_of(variants.front(), encoding), encoding, peer);
    const auto decoded = decode(encoding.codec, encoded, count);
    double exact[2] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const double ours = decode(encoding.dtype, &own[i * size]);
      exact[0] += std::pow(decoded[i].value - ours, 2);
      exact[1] += std::pow(decoded[i].value - rounded_like(encoding, ours, decoded[i].unit), 2);
    }
    for (const bool difference : {false, true}) {
      const Landed first =
          land(passes_of(variants.front(), encoding), encoding, encoded, own, difference);
      CHECK(first.stats.squared_distance == doctest::Approx(exact[difference]).epsilon(1e-5));
      CHECK(first.stats.finite);
      for (const kernels::Variant& variant : variants) {
        CAPTURE(variant.name);
        const Landed other = land(passes_of(variant, encoding), encoding, encoded, own, difference);
        CHECK(other.bytes == first.bytes);
        CHECK(other.stats.squared_distance == first.stats.squared_distance);
      }
    }
  }
}

TEST_CASE("one peer element that is not finite is found wherever it is, also when encoded") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    const std::size_t count = 4115;
    const Bytes own = random_elements(encoding.dtype, count, 97);
    for (const double bad : {Double::quiet_NaN(), Double::infinity(), -Double::infinity()}) {
      for (const std::size_t at : {0, 1, 15, 16, 31, 32, 2048, 4095, 4096, 4114}) {
        CAPTURE(bad);
        CAPTURE(at);
        Bytes peer = own, value;
        append_value(value, encoding.dtype, bad);
        std::memcpy(&peer[at * value.size()], value.data(), value.size());
        const Bytes encoded = encoded_by(passes, encoding, peer);
        CHECK_FALSE(land(passes, encoding, encoded, own, true).stats.finite);
        CHECK_FALSE(land(passes, encoding, encoded, own, false).stats.finite);
        CHECK_FALSE(land(passes, encoding, encoded, peer, true).stats.finite);
      }
    }
  });
}

TEST_CASE("a peer's encoded values are not blamed for an own element that is not finite") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    const Bytes peer = random_elements(encoding.dtype, 100, 98);
    for (const double bad : {Double::quiet_NaN(), Double::infinity()}) {
      Bytes own = peer, value;
      append_value(value, encoding.dtype, bad);
      std::memcpy(&own[50 * value.size()], value.data(), value.size());
      const Bytes encoded = encoded_by(passes, encoding, peer);
      CHECK(land(passes, encoding, encoded, own, true).stats.finite);
      CHECK(land(passes, encoding, encoded, own, false).stats.finite);
    }
  });
}

TEST_CASE("landing over the own buffer gives the same as in a buffer of its own") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    const Bytes own = random_elements(encoding.dtype, 1003, 99);
    const Bytes encoded = encoded_by(passes, encoding, random_elements(encoding.dtype, 1003, 100));
    for (const bool difference : {true, false}) {
      const Landed apart = land(passes, encoding, encoded, own, difference);
      Bytes over = own;
      const auto pass = difference ? passes.land_difference : passes.land_copy;
      CHECK(pass(over.data(), encoded.data(), over.data(), 1003).squared_distance ==
            apart.stats.squared_distance);
      CHECK(over == apart.bytes);
    }
  });
}

TEST_CASE("the encoded passes are those of the fastest variant, and refuse what does not fit") {
  const Encoding encoding{DType::float32, Codec::int8};
  const auto& passes = passes_of(kernels::supported_variants().front(), encoding);
  const Bytes peer = random_elements(DType::float32, 100, 101);
  const Bytes own = random_elements(DType::float32, 100, 102);
  Bytes encoded(107), landing(400);
  kernels::encode(DType::float32, Codec::int8, encoded, peer);
  CHECK(encoded == encoded_by(passes, encoding, peer));
  const auto stats =
      kernels::land_encoded_difference(DType::float32, Codec::int8, landing, encoded, own);
  CHECK(landing == land(passes, encoding, encoded, own, true).bytes);
  CHECK(stats.squared_distance ==
        land(passes, encoding, encoded, own, true).stats.squared_distance);
  kernels::land_encoded_copy(DType::float32, Codec::int8, landing, encoded, own);
  CHECK(landing == land(passes, encoding, encoded, own, false).bytes);

  CHECK_THROWS_AS(kernels::encode(DType::float32, Codec::raw, encoded, peer),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::encode(DType::float16, Codec::bf16, encoded, peer),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::encode(DType::int32, Codec::int8, encoded, peer), std::invalid_argument);
  Bytes shorter(106), cut(399);
  CHECK_THROWS_AS(kernels::encode(DType::float32, Codec::int8, shorter, peer),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::encode(DType::float32, Codec::int8, encoded, cut),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::land_encoded_copy(DType::float32, Codec::int8, cut, encoded, own),
                  std::invalid_argument);
  CHECK_THROWS_AS(
      kernels::land_encoded_difference(DType::float32, Codec::int8, landing, shorter, own),
      std::invalid_argument);
}

#include "interpolation/kernels/encoding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "test/interpolation/kernels/encoded_cases.h"

using namespace dpwa;
using namespace dpwa::test;

TEST_CASE("encoding gives the bytes of the scalar reference at any size and address") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    for (const std::size_t size : kEncodedSizes) {
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

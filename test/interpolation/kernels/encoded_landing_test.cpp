#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "test/interpolation/kernels/encoded_cases.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

using Double = std::numeric_limits<double>;

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

TEST_CASE("landing what is encoded gives the scalar result at any size and address") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    for (const std::size_t size : kEncodedSizes) {
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

TEST_CASE(
    "landing what is encoded past the cache gives the bits and statistics of landing into it") {
  for_each_encoding([](const kernels::EncodedKernels& passes, Encoding encoding) {
    for (const std::size_t size : kEncodedSizes) {
      CAPTURE(size);
      const Bytes peer = random_elements(encoding.dtype, size, 70 + size);
      Bytes own = random_elements(encoding.dtype, size, 80 + size), infinity;
      append_value(infinity, encoding.dtype, Double::infinity());
      const Bytes encoded = encoded_by(passes, encoding, peer);
      for (const bool finite : {true, false}) {
        if (!finite && size > 0) std::copy(infinity.begin(), infinity.end(), own.begin());
        const Landed want = land(passes, encoding, encoded, own, true);
        Bytes room(own.size() + 64 + 64, std::byte{0x5A});
        const std::size_t to_line = 64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64;
        const auto end = to_line + own.size();
        const auto got = passes.land_difference_streaming(room.data() + to_line, encoded.data(),
                                                          own.data(), size);
        CHECK(std::equal(want.bytes.begin(), want.bytes.end(), room.data() + to_line));
        for (std::size_t at = 0; at < room.size(); at += at + 1 == to_line ? own.size() + 1 : 1)
          CHECK((room[at] == std::byte{0x5A} || (at >= to_line && at < end)));
        CHECK(same(got.squared_distance, want.stats.squared_distance));
        CHECK(got.finite == want.stats.finite);
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

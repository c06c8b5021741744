#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "interpolation/kernels/kernels.h"
#include "test/interpolation/kernels/reference.h"

using namespace dpwa;
using namespace dpwa::test;

namespace {

using Single = std::numeric_limits<float>;

Bytes floats(std::size_t count, float value) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) append(bytes, value);
  return bytes;
}

void set(Bytes& bytes, std::size_t index, float value) {
  std::memcpy(&bytes[4 * index], &value, sizeof value);
}

struct Landed {
  kernels::RawStats difference;
  kernels::RawStats copy;
};

Landed land(const kernels::Variant& variant, DType dtype, const Bytes& peer, const Bytes& own) {
  Bytes landing(peer.size());
  const kernels::FloatingKernels& passes = passes_of(variant, dtype);
  const std::size_t count = peer.size() / size_of(dtype);
  return {passes.land_difference(landing.data(), peer.data(), own.data(), count),
          passes.land_copy(landing.data(), peer.data(), own.data(), count)};
}

}  // namespace

TEST_CASE("the squared distance is that of the scalar sum, the same from both passes") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      for (const std::size_t size : {std::size_t{1}, std::size_t{31}, std::size_t{5000}}) {
        CAPTURE(variant.name);
        CAPTURE(name_of(dtype));
        CAPTURE(size);
        const Bytes peer = random_elements(dtype, size, 11), own = random_elements(dtype, size, 12);
        double exact = 0;
        for (std::size_t at = 0; at < peer.size(); at += size_of(dtype)) {
          const double gap = decode(dtype, &peer[at]) - decode(dtype, &own[at]);
          exact += gap * gap;
        }
        const Landed landed = land(variant, dtype, peer, own);
        CHECK(landed.difference.squared_distance == doctest::Approx(exact).epsilon(1e-5));
        CHECK(landed.copy.squared_distance == landed.difference.squared_distance);
        CHECK(landed.difference.finite);
        CHECK(landed.copy.finite);
      }
    }
  }
}

TEST_CASE("every variant gives the same bits, sums included") {
  const auto variants = kernels::supported_variants();
  for (const DType dtype : kFloatingTypes) {
    CAPTURE(name_of(dtype));
    const std::size_t count = 10007;
    const Bytes x = random_elements(dtype, count, 21), y = random_elements(dtype, count, 22);
    std::vector<Bytes> results;
    std::vector<double> distances;
    for (const kernels::Variant& variant : variants) {
      const kernels::FloatingKernels& passes = passes_of(variant, dtype);
      Bytes landing(x.size()), blended = x, mixed = x;
      distances.push_back(
          passes.land_difference(landing.data(), x.data(), y.data(), count).squared_distance);
      passes.delta(blended.data(), y.data(), count, 0.3);
      passes.lerp(mixed.data(), y.data(), count, 0.3);
      landing.insert(landing.end(), blended.begin(), blended.end());
      landing.insert(landing.end(), mixed.begin(), mixed.end());
      results.push_back(landing);
    }
    for (std::size_t i = 1; i < results.size(); ++i) {
      CAPTURE(variants[i].name);
      CHECK(results[i] == results[0]);
      CHECK(std::bit_cast<std::uint64_t>(distances[i]) ==
            std::bit_cast<std::uint64_t>(distances[0]));
    }
  }
}

TEST_CASE("the squared distance of millions of elements stays accurate") {
  const std::size_t count = 4'000'003;
  const Bytes peer = floats(count, 1.1f), own = floats(count, 1.0f);
  const double gap = static_cast<double>(1.1f - 1.0f);
  const double exact = gap * gap * static_cast<double>(count);
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    CAPTURE(variant.name);
    const Landed landed = land(variant, DType::float32, peer, own);
    CHECK(landed.difference.squared_distance == doctest::Approx(exact).epsilon(2e-6));
  }
}

TEST_CASE("one peer element that is not finite is found wherever it is") {
  const std::size_t count = 4099;
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const float bad : {Single::quiet_NaN(), Single::infinity(), -Single::infinity()}) {
      for (const std::size_t at : {0, 1, 17, 31, 32, 2048, 4095, 4096, 4098}) {
        CAPTURE(variant.name);
        CAPTURE(bad);
        CAPTURE(at);
        Bytes peer = floats(count, 1);
        set(peer, at, bad);
        const Landed landed = land(variant, DType::float32, peer, floats(count, 2));
        CHECK_FALSE(landed.difference.finite);
        CHECK_FALSE(landed.copy.finite);
        // Even where the own element is the same, so that no distance shows it.
        CHECK_FALSE(land(variant, DType::float32, peer, peer).difference.finite);
      }
    }
  }
}

TEST_CASE("a peer is not blamed for an own element that is not finite") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const float bad : {Single::quiet_NaN(), Single::infinity()}) {
      Bytes own = floats(100, 1);
      set(own, 50, bad);
      const Landed landed = land(variant, DType::float32, floats(100, 2), own);
      CHECK(landed.difference.finite);
      CHECK(landed.copy.finite);
    }
  }
}

TEST_CASE("a square beyond fp32 makes the distance infinite and the peer no less finite") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    Bytes peer = floats(100, 1);
    set(peer, 50, 1e30f);
    const Landed landed = land(variant, DType::float32, peer, floats(100, 1));
    CHECK(landed.difference.finite);
    CHECK(landed.copy.finite);
    CHECK(landed.difference.squared_distance == std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("a landed difference that overflows its dtype counts as not finite") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    CAPTURE(variant.name);
    const Bytes high = floats(40, Single::max()), low = floats(40, Single::lowest());
    CHECK_FALSE(land(variant, DType::float32, high, low).difference.finite);
    CHECK(land(variant, DType::float32, high, low).copy.finite);

    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      CAPTURE(name_of(dtype));
      Bytes top, bottom;
      append(top, static_cast<std::uint16_t>(dtype == DType::float16 ? 0x7bff : 0x7f7f));
      append(bottom, static_cast<std::uint16_t>(dtype == DType::float16 ? 0xfbff : 0xff7f));
      CHECK_FALSE(land(variant, dtype, top, bottom).difference.finite);
      CHECK(land(variant, dtype, top, top).difference.finite);
    }
  }
}

TEST_CASE("statistics of chunks add up") {
  kernels::PassStats total;
  total += {.squared_distance = 2, .finite = true};
  CHECK(total.finite);
  total += {.squared_distance = 3, .finite = false};
  total += {.squared_distance = 4, .finite = true};
  CHECK(total.squared_distance == 9);
  CHECK_FALSE(total.finite);
}

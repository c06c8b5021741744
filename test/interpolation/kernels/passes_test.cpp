#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "interpolation/kernels/checked_landing.h"
#include "interpolation/kernels/kernels.h"
#include "test/interpolation/kernels/reference.h"

using namespace dpwa::test;
using namespace dpwa;

namespace {

constexpr std::size_t kSizes[] = {0, 1, 3, 15, 17, 63, 65, 1000, 4099};
constexpr double kFactors[] = {0.5, 0.3, 1.0};

using Expected = std::function<double(double a, double b)>;

bool matches(DType dtype, const Bytes& got, const Bytes& a, const Bytes& b,
             const Expected& expected) {
  for (std::size_t at = 0; at < got.size(); at += size_of(dtype)) {
    const double want = expected(decode(dtype, &a[at]), decode(dtype, &b[at]));
    if (!same(decode(dtype, &got[at]), want)) return false;
  }
  return true;
}

// Runs `check(variant, dtype, a, b, offset)` over every variant, dtype, size and offset.
template <class Check>
void for_each_case(Check check) {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      for (const std::size_t size : kSizes) {
        const Bytes a = random_elements(dtype, size, 1 + size);
        const Bytes b = random_elements(dtype, size, 2 + size);
        for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, size_of(dtype)}) {
          CAPTURE(variant.name);
          CAPTURE(name_of(dtype));
          CAPTURE(size);
          CAPTURE(offset);
          check(passes_of(variant, dtype), dtype, a, b, offset);
        }
      }
    }
  }
}

// CRC32C bit by bit, without the inversions.
std::uint32_t checksum_state(std::uint32_t state, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78 : 0);
  }
  return state;
}

template <class Integer>
void check_maximum(dpwa::DType dtype) {
  CAPTURE(dpwa::name_of(dtype));
  using Limits = std::numeric_limits<Integer>;
  const std::vector<Integer> own = {0, 5, Limits::min(), Limits::max(), 7, Limits::min(), 1};
  const std::vector<Integer> other = {1, 3, Limits::max(), Limits::min(), 7, Limits::min(), 0};
  const std::vector<Integer> expected = {1, 5, Limits::max(), Limits::max(), 7, Limits::min(), 1};
  REQUIRE(dpwa::size_of(dtype) == sizeof(Integer));
  const std::size_t bytes = own.size() * sizeof(Integer);
  std::vector<std::byte> x(bytes + 1), peer(bytes + 1);  // one byte past an aligned address
  std::memcpy(x.data() + 1, own.data(), bytes);
  std::memcpy(peer.data() + 1, other.data(), bytes);
  dpwa::kernels::maximum(dtype, std::span(x).subspan(1), std::span(peer).subspan(1));
  CHECK(std::memcmp(x.data() + 1, expected.data(), bytes) == 0);
  CHECK(std::memcmp(peer.data() + 1, other.data(), bytes) == 0);
}

}  // namespace

TEST_CASE("landing a difference gives the scalar result at any size and address") {
  for_each_case([](const kernels::FloatingKernels& passes, DType dtype, const Bytes& peer,
                   const Bytes& own, std::size_t offset) {
    Placed landing(Bytes(peer.size()), offset), from(peer, 2 * offset), mine(own, 3 * offset);
    const std::size_t count = peer.size() / size_of(dtype);
    const kernels::RawStats stats =
        passes.land_difference(landing.data(), from.data(), mine.data(), count);
    CHECK(matches(dtype, landing.bytes(), peer, own, [&](double theirs, double ours) {
      return reference_difference(dtype, theirs, ours);
    }));
    CHECK(landing.surroundings_untouched());
    CHECK((count > 0 || stats.squared_distance == 0));
    CHECK((count > 0 || stats.finite));
  });
}

TEST_CASE("landing past the cache gives the bits and statistics of landing into it") {
  for_each_case([](const kernels::FloatingKernels& passes, DType dtype, const Bytes& peer,
                   const Bytes& own, std::size_t offset) {
    Placed cached(Bytes(peer.size()), 0), from(peer, 2 * offset), mine(own, 3 * offset);
    const std::size_t count = peer.size() / size_of(dtype);
    const auto want = passes.land_difference(cached.data(), from.data(), mine.data(), count);
    Bytes room(peer.size() + 64 + 64, std::byte{0x5A});
    const std::size_t to_line = 64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64;
    std::byte* landing = room.data() + to_line;
    const auto got = passes.land_difference_streaming(landing, from.data(), mine.data(), count);
    CHECK(std::equal(landing, landing + peer.size(), cached.bytes().begin()));
    CHECK(std::all_of(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(to_line),
                      [](std::byte value) { return value == std::byte{0x5A}; }));
    CHECK(std::all_of(room.begin() + static_cast<std::ptrdiff_t>(to_line + peer.size()), room.end(),
                      [](std::byte value) { return value == std::byte{0x5A}; }));
    CHECK(got.squared_distance == want.squared_distance);
    CHECK(got.finite == want.finite);
  });
}

TEST_CASE("landing with a checksum gives what landing without it does, and the peer's CRC32C") {
  if (!kernels::checks_while_landing(DType::float32)) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::uint32_t begun = 0x12345678;
  for (const std::size_t size : {0, 1, 31, 32, 33, 1000, 4099, 9000}) {
    for (const auto stores : {kernels::Stores::cached, kernels::Stores::streaming}) {
      CAPTURE(size);
      const Bytes peer = random_elements(DType::float32, size, 1);
      Bytes own = random_elements(DType::float32, size, 2);
      if (size > 5000) std::memcpy(&own[sizeof infinity * 5000], &infinity, sizeof infinity);
      Bytes want(peer.size()), room(peer.size() + 64);
      const std::size_t to_line = 64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64;
      const auto landing = std::span(room).subspan(to_line, peer.size());
      std::uint32_t state = begun;
      const auto plain = kernels::land_difference(DType::float32, want, peer, own);
      const auto checked =
          kernels::land_difference_checked(DType::float32, landing, peer, own, stores, state);
      CHECK(std::ranges::equal(landing, want));
      CHECK(same(checked.squared_distance, plain.squared_distance));
      CHECK(checked.finite == plain.finite);
      CHECK(state == checksum_state(begun, peer));
    }
  }
}

TEST_CASE("landing a copy gives the peer's bytes at any size and address") {
  for_each_case([](const kernels::FloatingKernels& passes, DType dtype, const Bytes& peer,
                   const Bytes& own, std::size_t offset) {
    Placed landing(Bytes(peer.size()), offset), from(peer, 2 * offset), mine(own, 3 * offset);
    passes.land_copy(landing.data(), from.data(), mine.data(), peer.size() / size_of(dtype));
    CHECK(landing.bytes() == peer);
    CHECK(landing.surroundings_untouched());
  });
}

TEST_CASE("delta and lerp give the scalar result at any size and address") {
  for_each_case([](const kernels::FloatingKernels& passes, DType dtype, const Bytes& x,
                   const Bytes& y, std::size_t offset) {
    const std::size_t count = x.size() / size_of(dtype);
    for (const double factor : kFactors) {
      Placed blended(x, offset), other(y, 2 * offset);
      passes.delta(blended.data(), other.data(), count, factor);
      CHECK(matches(dtype, blended.bytes(), x, y, [&](double own, double difference) {
        return reference_delta(dtype, own, difference, factor);
      }));
      CHECK(blended.surroundings_untouched());

      Placed mixed(x, offset);
      passes.lerp(mixed.data(), other.data(), count, factor);
      CHECK(matches(dtype, mixed.bytes(), x, y, [&](double own, double peer) {
        return reference_lerp(dtype, own, peer, factor);
      }));
      CHECK(mixed.surroundings_untouched());
    }
  });
}

TEST_CASE("special values pass as the scalar arithmetic has it, in vectors and in the rest") {
  using Single = std::numeric_limits<float>;
  const float special[] = {0.0f,
                           -0.0f,
                           1.0f,
                           -1.0f,
                           Single::infinity(),
                           -Single::infinity(),
                           Single::quiet_NaN(),
                           Single::denorm_min(),
                           -Single::denorm_min(),
                           Single::min(),
                           Single::max(),
                           Single::lowest()};
  for (const bool wide : {false, true}) {
    const DType dtype = wide ? DType::float64 : DType::float32;
    Bytes a, b;
    for (const float left : special) {
      for (const float right : special) {
        if (wide) {
          append(a, static_cast<double>(left));
          append(b, static_cast<double>(right));
        } else {
          append(a, left);
          append(b, right);
        }
      }
    }
    for (const kernels::Variant& variant : kernels::supported_variants()) {
      CAPTURE(variant.name);
      const kernels::FloatingKernels& passes = passes_of(variant, dtype);
      const std::size_t count = a.size() / size_of(dtype);
      Bytes landing(a.size()), copy(a.size()), blended = a, mixed = a;
      passes.land_difference(landing.data(), a.data(), b.data(), count);
      passes.land_copy(copy.data(), a.data(), b.data(), count);
      passes.delta(blended.data(), b.data(), count, 0.5);
      passes.lerp(mixed.data(), b.data(), count, 0.25);
      CHECK(copy == a);
      CHECK(matches(dtype, landing, a, b, [&](double peer, double own) {
        return reference_difference(dtype, peer, own);
      }));
      CHECK(matches(dtype, blended, a, b, [&](double x, double difference) {
        return reference_delta(dtype, x, difference, 0.5);
      }));
      CHECK(matches(dtype, mixed, a, b,
                    [&](double x, double peer) { return reference_lerp(dtype, x, peer, 0.25); }));
    }
  }
}

TEST_CASE("a pass whose target is one of its sources gives the same as with a buffer of its own") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      CAPTURE(variant.name);
      CAPTURE(name_of(dtype));
      const kernels::FloatingKernels& passes = passes_of(variant, dtype);
      const std::size_t count = 1003;
      const Bytes peer = random_elements(dtype, count, 5), own = random_elements(dtype, count, 6);
      Bytes apart(peer.size()), over_peer = peer, over_own = own;
      const auto stats = passes.land_difference(apart.data(), peer.data(), own.data(), count);
      const auto first =
          passes.land_difference(over_peer.data(), over_peer.data(), own.data(), count);
      const auto second =
          passes.land_difference(over_own.data(), peer.data(), over_own.data(), count);
      CHECK(over_peer == apart);
      CHECK(over_own == apart);
      CHECK(first.squared_distance == stats.squared_distance);
      CHECK(second.squared_distance == stats.squared_distance);

      Bytes copy = own;
      const auto third = passes.land_copy(copy.data(), peer.data(), copy.data(), count);
      CHECK(copy == peer);
      CHECK(third.squared_distance == stats.squared_distance);

      Bytes mixed = peer;
      passes.lerp(mixed.data(), peer.data(), count, 0.3);
      passes.lerp(copy.data(), copy.data(), count, 0.3);
      CHECK(copy == mixed);
    }
  }
}

TEST_CASE("maximum keeps the larger integer of each pair") {
  check_maximum<std::int64_t>(dpwa::DType::int64);
  check_maximum<std::int32_t>(dpwa::DType::int32);
  check_maximum<std::int16_t>(dpwa::DType::int16);
  check_maximum<std::int8_t>(dpwa::DType::int8);
  check_maximum<std::uint8_t>(dpwa::DType::uint8);
}

TEST_CASE("maximum of booleans is or") {
  std::vector<std::byte> x = {std::byte{0}, std::byte{0}, std::byte{1}, std::byte{1}};
  const std::vector<std::byte> peer = {std::byte{0}, std::byte{1}, std::byte{0}, std::byte{1}};
  dpwa::kernels::maximum(dpwa::DType::boolean, x, peer);
  CHECK(x == std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{1}, std::byte{1}});
}

TEST_CASE("maximum refuses floating-point dtypes and lengths that do not fit") {
  std::vector<std::byte> x(8), peer(8), shorter(4), cut(7);
  CHECK_THROWS_AS(dpwa::kernels::maximum(dpwa::DType::float32, x, peer), std::invalid_argument);
  CHECK_THROWS_AS(dpwa::kernels::maximum(dpwa::DType::int32, x, shorter), std::invalid_argument);
  CHECK_THROWS_AS(dpwa::kernels::maximum(dpwa::DType::int32, cut, cut), std::invalid_argument);
}

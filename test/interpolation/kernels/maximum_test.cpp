#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "interpolation/kernels/kernels.h"

namespace {

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

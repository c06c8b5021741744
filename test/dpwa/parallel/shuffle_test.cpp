#include "dpwa/parallel/shuffle.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>

using dpwa::Random;

TEST_CASE("a shuffle is the same for the same seed, with every library") {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  Random random(1);
  dpwa::shuffle(values, random);
  CHECK(values == std::vector<int>{5, 7, 6, 8, 4, 2, 0, 3, 9, 1});
}

TEST_CASE("every order comes equally often") {
  Random random(5);
  std::array<int, 6> counts{};
  for (int run = 0; run < 60000; ++run) {
    std::vector<std::size_t> values{0, 1, 2};
    dpwa::shuffle(values, random);
    ++counts[2 * values[0] + (values[1] > values[2] ? 1 : 0)];
  }
  for (const int count : counts) CHECK(std::abs(count - 10000) < 400);
}

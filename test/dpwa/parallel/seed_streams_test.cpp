#include "dpwa/parallel/seed_streams.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

using namespace dpwa;

namespace {

constexpr SeedRole roles[] = {SeedRole::weights,     SeedRole::split,     SeedRole::order,
                              SeedRole::noise,       SeedRole::synthetic, SeedRole::statistics,
                              SeedRole::shared_order};

}  // namespace

TEST_CASE("a seed stands for the same streams in every version") {
  const SeedStreams streams(1);
  CHECK(streams.common(SeedRole::weights) == derive_seed(1, {1}));
  CHECK(streams.common(SeedRole::split) == derive_seed(1, {2}));
  CHECK(streams.of_rank(SeedRole::order, 3) == derive_seed(1, {3, 3}));
  CHECK(streams.of_rank(SeedRole::order, 3, 2) == derive_seed(derive_seed(1, {3, 3}), {2}));
  CHECK(streams.of_rank(SeedRole::noise, 0) == derive_seed(1, {4, 0}));
  CHECK(streams.of_pair(SeedRole::noise, 5, 77) == derive_seed(1, {4, 5, 77}));
  CHECK(streams.common(SeedRole::synthetic) == derive_seed(1, {5}));
  CHECK(streams.common(SeedRole::statistics) == derive_seed(1, {6}));
  CHECK(streams.common(SeedRole::shared_order, 9) == derive_seed(derive_seed(1, {7}), {9}));
  CHECK(streams.common(SeedRole::weights) == 0x6C5795E14B3B7E33ULL);
}

TEST_CASE("every role, rank and epoch has a stream of its own") {
  std::set<std::uint64_t> seeds;
  std::size_t count = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const SeedStreams streams(seed);
    for (const SeedRole role : roles) {
      seeds.insert(streams.common(role)), ++count;
      for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
        seeds.insert(streams.common(role, epoch)), ++count;
      // A role is either common or per rank.
      if (role != SeedRole::order && role != SeedRole::noise) continue;
      for (std::uint64_t rank = 0; rank < 16; ++rank) {
        for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
          seeds.insert(streams.of_rank(role, rank, epoch)), ++count;
      }
    }
  }
  CHECK(seeds.size() == count);
}

TEST_CASE("streams of neighbouring ranks and epochs are not correlated") {
  const SeedStreams streams(1);
  constexpr int draws = 4000;
  const auto values = [](std::uint64_t seed) {
    Random random(seed);
    std::vector<double> values;
    for (int i = 0; i < draws; ++i) values.push_back(random.normal(0, 1));
    return values;
  };
  const auto correlation = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return std::abs(sum / draws);
  };
  const double bound = 4 / std::sqrt(draws);  // four standard deviations
  const auto first = values(streams.of_rank(SeedRole::noise, 0));
  CHECK(correlation(first, values(streams.of_rank(SeedRole::noise, 1))) < bound);
  CHECK(correlation(first, values(streams.of_rank(SeedRole::noise, 0, 1))) < bound);
  CHECK(correlation(first, values(streams.of_rank(SeedRole::order, 0))) < bound);
  CHECK(correlation(first, values(SeedStreams(2).of_rank(SeedRole::noise, 0))) < bound);
}

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

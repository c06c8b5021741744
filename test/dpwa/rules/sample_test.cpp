#include "dpwa/rules/sample.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace dpwa {

TEST_CASE("a sample of fewer than were asked for holds all, in their order") {
  Random random(1);
  Sample<int> sample(3, random);
  CHECK(sample.values().empty());
  sample.offer(7);
  sample.offer(5);
  CHECK(sample.values() == std::vector{7, 5});
}

TEST_CASE("a sample holds as many as were asked for, each once, and each as often as any other") {
  constexpr int offered = 10;
  constexpr int most = 3;
  constexpr int runs = 10'000;
  Random random(2);
  std::array<int, offered> taken{};
  for (int run = 0; run < runs; ++run) {
    Sample<int> sample(most, random);
    for (int value = 0; value < offered; ++value) sample.offer(value);
    CHECK(std::set(sample.values().begin(), sample.values().end()).size() == most);
    for (const int value : sample.values()) ++taken[static_cast<std::size_t>(value)];
  }
  // Binomial with p = 0.3: a deviation of 46, of which these are five.
  for (const int times : taken)
    CHECK(times == doctest::Approx(runs * most / offered).epsilon(0.077));
}

TEST_CASE("a sample of nothing stays empty") {
  Random random(3);
  Sample<int> sample(0, random);
  sample.offer(1);
  CHECK(sample.values().empty());
}

TEST_CASE("one draw is each of 10 to 1000 equally often") {
  Random random(1);
  std::vector<int> counts(1001);
  for (int i = 0; i < 991000; ++i) ++counts.at(static_cast<std::size_t>(highest_draw(1, random)));
  double sum = 0;
  for (int value = 10; value <= 1000; ++value) sum += std::pow(counts[value] - 1000, 2) / 1000;
  CHECK(*std::max_element(counts.begin(), counts.begin() + 10) == 0);
  CHECK(std::abs(sum - 990) < 5 * std::sqrt(2 * 990));
}

TEST_CASE("the highest of many draws is distributed as their maximum") {
  constexpr int draws = 100000;
  for (const std::uint64_t count : {2U, 30U, 1000U, 10000U}) {
    CAPTURE(count);
    Random random(count);
    std::vector<double> highest(draws);
    for (double& one : highest) one = highest_draw(count, random);
    // A level near each tenth of the distribution.
    for (double share = 0.1; share < 0.95; share += 0.1) {
      const double level = std::floor(991 * std::pow(share, 1.0 / static_cast<double>(count)));
      const double expected = std::pow(level / 991, count);
      const auto below =
          std::ranges::count_if(highest, [&](double value) { return value <= level + 9; });
      const double deviation = std::sqrt(draws * expected * (1 - expected));
      CHECK(std::abs(static_cast<double>(below) - draws * expected) < 5 * deviation);
    }
  }
}

TEST_CASE("as many draws are at the highest as when each is drawn") {
  constexpr int trials = 20000;
  Random random(5);
  // By the highest value, how often one, two and more of the draws had it.
  const auto shares = [&](std::uint64_t count, bool each) {
    std::vector<double> seen(4);
    for (int i = 0; i < trials; ++i) {
      double highest = 0;
      std::uint64_t ties = 0;
      for (std::uint64_t one = 0; each && one < count; ++one) {
        const double value = dpwa::draw(random);
        ties = value == highest ? ties + 1 : value > highest ? 1 : ties;
        highest = std::max(highest, value);
      }
      if (!each) {
        highest = highest_draw(count, random);
        ties = draws_at_highest(highest, count, random);
      }
      ++seen[std::min<std::uint64_t>(ties, 3)];
    }
    return seen;
  };
  for (const std::uint64_t count : {2U, 40U, 800U}) {
    CAPTURE(count);
    const auto ours = shares(count, false);
    const auto theirs = shares(count, true);
    CHECK(ours[0] == 0);
    for (std::size_t ties = 1; ties < 4; ++ties)
      CHECK(std::abs(ours[ties] - theirs[ties]) <= 5 * std::sqrt(ours[ties] + theirs[ties]));
  }
  CHECK(draws_at_highest(10, 7, random) == 7);
  CHECK(draws_at_highest(500, 1, random) == 1);
}

}  // namespace dpwa

#include "dpwa/rules/sample.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

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

}  // namespace dpwa

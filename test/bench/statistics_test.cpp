#include "bench/measure/statistics.h"

#include <doctest/doctest.h>

using namespace dpwa::bench;

TEST_CASE("a quantile is the value of the nearest rank") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 0.99) == 5);
  CHECK(quantile(values, 1) == 5);
  CHECK(quantile({7, 1}, 0.5) == 1);
}

TEST_CASE("the 99th percentile of a hundred values is the last but one") {
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  CHECK(quantile(values, 0.99) == 99);
}

TEST_CASE("a range has the lowest, the median and the highest value") {
  const Range range = range_of({2, 9, 4});
  CHECK(range.min == 2);
  CHECK(range.median == 4);
  CHECK(range.max == 9);
  CHECK(spread_of(range) == doctest::Approx(7.0 / 4));
}

TEST_CASE("nothing has no quantiles and no spread") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(range_of({}).max == 0);
  CHECK(spread_of(range_of({})) == 0);
}

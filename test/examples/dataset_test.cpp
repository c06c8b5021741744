#include "examples/train/dataset.h"

#include <doctest/doctest.h>

#include <set>

#include "examples/train/data_sets.h"

using namespace dpwa::train;

TEST_CASE("a batch holds the chosen images, normalised per channel, and their labels") {
  Dataset data;
  data.channels = 2;
  data.height = 1;
  data.width = 2;
  data.pixels = {0, 255, 51, 102, 1, 2, 3, 4};
  data.labels = {7, 3};
  data.mean = {0.5F, 0.2F};
  data.deviation = {0.25F, 0.1F};
  const std::vector<std::uint32_t> samples{1, 0};
  std::vector<float> pixels(8);
  std::vector<std::int64_t> labels(2);
  fill_batch(data, samples, pixels, labels);
  CHECK(labels == std::vector<std::int64_t>{3, 7});
  CHECK(pixels[4] == doctest::Approx(-2));               // (0 - .5) / .25
  CHECK(pixels[5] == doctest::Approx(2));                // (1 - .5) / .25
  CHECK(pixels[6] == doctest::Approx(0).epsilon(1e-6));  // (.2 - .2) / .1
  CHECK(pixels[7] == doctest::Approx(2));                // (.4 - .2) / .1
  CHECK(pixels[0] == doctest::Approx((1 / 255.0 - 0.5) / 0.25));
}

TEST_CASE("the synthetic set is the same for the same seed and another for another") {
  const TrainTest one = make_synthetic(1);
  CHECK(one.train.pixels == make_synthetic(1).train.pixels);
  CHECK(one.train.pixels != make_synthetic(2).train.pixels);
  CHECK(one.train.size() == 12000);
  CHECK(one.test.size() == 2000);
  CHECK(one.train.pixels.size() == one.train.size() * 28 * 28);
  CHECK(std::set<int>(one.train.labels.begin(), one.train.labels.end()).size() == 10);
  CHECK(one.test.pixels != std::vector<std::uint8_t>(one.train.pixels.begin(),
                                                     one.train.pixels.begin() + 2000 * 28 * 28));
}

TEST_CASE("the synthetic set is normalised to about zero mean and unit deviation") {
  const Dataset data = make_synthetic(3).train;
  double sum = 0;
  double squares = 0;
  for (const std::uint8_t pixel : data.pixels) {
    const double value = (pixel / 255.0 - data.mean[0]) / data.deviation[0];
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(data.pixels.size());
  CHECK(std::abs(sum / count) < 0.3);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.4));
}

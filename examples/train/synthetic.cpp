#include <algorithm>
#include <cmath>

#include "dpwa/parallel/seed_streams.h"
#include "examples/train/data_sets.h"

namespace dpwa::train {
namespace {

constexpr int side = 28;
constexpr int max_shift = 3;
constexpr std::size_t classes = 10;
using Pattern = std::vector<float>;  // side x side, in [0, 1]

Pattern make_pattern(Random& random) {
  Pattern pattern(side * side, 0.0F);
  for (int blob = 0; blob < 5; ++blob) {
    const double x = random.uniform(6, side - 6);
    const double y = random.uniform(6, side - 6);
    const double radius = random.uniform(1.5, 3.5);
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column) {
        const double square = (row - y) * (row - y) + (column - x) * (column - x);
        pattern[static_cast<std::size_t>(row * side + column)] +=
            static_cast<float>(std::exp(-square / (2 * radius * radius)));
      }
  }
  const float top = *std::max_element(pattern.begin(), pattern.end());
  for (float& value : pattern) value /= top;
  return pattern;
}

// A pattern moved by whole pixels; pixels from outside it are dark.
class Shifted {
 public:
  Shifted(const Pattern& pattern, Random& random)
      : pattern_(pattern), down_(draw(random)), right_(draw(random)) {}
  float at(int row, int column) const {
    row -= down_;
    column -= right_;
    if (row < 0 || row >= side || column < 0 || column >= side) return 0;
    return pattern_[static_cast<std::size_t>(row * side + column)];
  }

 private:
  static int draw(Random& random) {
    return static_cast<int>(random.below(2 * max_shift + 1)) - max_shift;
  }
  const Pattern& pattern_;
  int down_;
  int right_;
};

Dataset draw(const std::vector<Pattern>& patterns, std::size_t size, Random& random) {
  Dataset data;
  data.height = data.width = side;
  data.mean = {0.27F};
  data.deviation = {0.25F};
  data.pixels.reserve(size * side * side);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t label = random.below(classes);
    const Shifted own(patterns[label], random);
    const Shifted other(patterns[random.below(classes)], random);
    const double contrast = random.uniform(0.4, 0.8);
    const double ghost = random.uniform(0, 0.3);
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column) {
        const double value = contrast * own.at(row, column) + ghost * other.at(row, column) +
                             random.uniform(0, 0.35);
        data.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value * 255, 0.0, 255.0)));
      }
    data.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return data;
}

}  // namespace

TrainTest make_synthetic(std::uint64_t seed) {
  Random random(SeedStreams(seed).common(SeedRole::synthetic));
  std::vector<Pattern> patterns;
  for (std::size_t c = 0; c < classes; ++c) patterns.push_back(make_pattern(random));
  TrainTest data;
  data.train = draw(patterns, 12000, random);
  data.test = draw(patterns, 2000, random);
  return data;
}

}  // namespace dpwa::train

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dpwa/base/random.h"

namespace dpwa {

// Keeps up to `most` of the offered values, each with the same probability, without knowing their
// number beforehand: a reservoir (algorithm R of Vitter, "Random Sampling with a Reservoir", 1985).
template <typename Value>
class Sample {
 public:
  Sample(std::size_t most, Random& random) : most_(most), random_(random) {}

  void offer(const Value& value) {
    ++offered_;
    if (values_.size() < most_) {
      values_.push_back(value);
    } else if (const auto at = random_.below(offered_); at < most_) {
      values_[at] = value;
    }
  }

  const std::vector<Value>& values() const { return values_; }

 private:
  std::size_t most_;
  Random& random_;
  std::uint64_t offered_ = 0;
  std::vector<Value> values_;
};

// The random number added to the score of a peer that may be chosen: uniform{10..1000}, as in the
// original dpwa.
constexpr std::uint64_t lowest_draw = 10;
constexpr std::uint64_t draw_values = 991;

inline double draw(Random& random) {
  return static_cast<double>(lowest_draw + random.below(draw_values));
}

// The highest of `count` (at least 1) such draws: one random number, however many they are. Its
// distribution, P(highest <= v) = (v / 991)^count with v counted from 1, is that of drawing each of
// them, but for the rounding of a double; plain multiplications make it the same everywhere.
double highest_draw(std::uint64_t count, Random& random);

// How many of `count` draws are equal to `highest`, given that it is the highest of them.
std::uint64_t draws_at_highest(double highest, std::uint64_t count, Random& random);

}  // namespace dpwa

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dpwa/base/random.h"

namespace dpwa {

// Up to `most` of what is offered, each with the same probability, without knowing beforehand how
// many there are: a reservoir (algorithm R of Vitter, "Random Sampling with a Reservoir", 1985).
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

}  // namespace dpwa

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "dpwa/base/time.h"

namespace dpwa {

// When a node sketches its model anew for those that ask: at most once a second, and for 0.5 % of
// the time. The moments are those of the wall clock, so that nodes that are asked together sketch
// models of the same time. Pure.
class SketchPace {
 public:
  static constexpr Duration shortest = std::chrono::seconds(1);
  static constexpr int least_share = 200;  // the period is so many times what a sketch takes

  // A power of two in seconds, as nodes with about the same speed have to have the same one.
  Duration period() const {
    Duration period = shortest;
    while (cost_ && period < least_share * *cost_) period *= 2;
    return period;
  }
  // Whether one is due at `wall_us`, which counts as made then.
  bool take(std::uint64_t wall_us) {
    using std::chrono::microseconds;
    const auto width = std::chrono::duration_cast<microseconds>(period()).count();
    const std::uint64_t now = wall_us / static_cast<std::uint64_t>(width);
    return std::exchange(slot_, now) != now;
  }
  // The least time counts: others had the processor for the rest.
  void took(Duration time) { cost_ = std::min(cost_.value_or(time), time); }

 private:
  std::optional<Duration> cost_;
  std::optional<std::uint64_t> slot_;
};

}  // namespace dpwa

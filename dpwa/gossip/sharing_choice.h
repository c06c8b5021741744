#pragma once

#include <array>
#include <optional>

namespace dpwa {

// Whether a pass is faster shared among threads or on one, learnt from how long both take: where
// one core fills the memory bus, or the others are busy, sharing costs more than it brings, and no
// size of the model tells. One choice for each kind of pass. Pure: time is an argument.
class SharingChoice {
 public:
  static constexpr unsigned retry_every = 16;  // passes, of which one is done the other way

  // Each way once, then the faster one so far; now and then the other, as things change.
  bool share();
  // What the pass took, done as share() said.
  void took(double seconds_per_byte);

 private:
  std::array<std::optional<double>, 2> cost_;  // alone, shared; smoothed
  bool shared_ = false;
  unsigned since_retry_ = 0;
};

}  // namespace dpwa

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/core/peer_table.h"

namespace dpwa {

// How far away a peer's parameters may be: tau of ClippedGossip (He, Karimireddy, Jaggi 2022),
// taken as a multiple of the median of recent distances. No peer holds more than its share of the
// samples, and one beyond the bound counts as the bound, so it takes half of the samples to move
// it: liars that are fewer than half of the peers cannot, while honest distances that grow are
// followed within half a window. Pure; one owner, one thread.
class DistanceBound {
 public:
  static constexpr std::size_t window = 32;
  // A sample counts for so many later ones: peers that have left do not count for ever.
  static constexpr std::uint64_t max_age = 8 * window;

  // `samples`: how many are needed before there is a bound, at most `window`.
  DistanceBound(double multiple, std::size_t samples, std::size_t peers);

  void set_peers(std::size_t peers);

  std::optional<double> get() const;
  // A distance that is zero (two nodes that have not trained since they met) or NaN (the own
  // parameters are not finite) says nothing and is left out.
  void observe(PeerId peer, double distance);

 private:
  struct Sample {
    PeerId peer;
    double distance;
    std::uint64_t number;
  };

  const double multiple_;
  const std::size_t needed_;
  std::size_t share_;            // of one peer in the window
  std::vector<Sample> samples_;  // oldest first
  std::uint64_t next_ = 0;
};

}  // namespace dpwa

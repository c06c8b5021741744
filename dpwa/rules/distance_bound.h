#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/rules/per_peer.h"

namespace dpwa {

// Of two in the middle the lower: of two distances, the nearer one. Reorders `values`, of which
// there is at least one.
inline double lower_median(std::span<double> values) {
  const auto median = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), median, values.end());
  return *median;
}

// How far away a peer's parameters may be: tau of ClippedGossip (He, Karimireddy, Jaggi 2022),
// taken as a multiple of the median of recent distances. No peer holds more than its share of the
// samples, and one beyond the bound counts as the bound, so it takes half of the samples to move
// it: liars that are fewer than half of the peers cannot, while honest distances that grow are
// followed within half a window.
//
// A node that was apart from the others for long need not wait so long: where more than half of the
// peers, and at least two, last came from beyond the bound, it is this node that is far away, and
// the median of what each of them last came with, which is no further than an honest one, takes the
// place of the window's. Only those count that have been within the bound. A process that has begun
// anew may have begun with a liar's weights: it counts as near until it has been near again.
//
// Before there are enough samples, a wider bound holds as soon as two peers have been heard: so
// many times as wide, as distances grow fast in the first steps, from the lower median of what each
// of them last came with. One peer alone says nothing: it may be the liar. Pure; one owner, one
// thread.
class DistanceBound {
 public:
  static constexpr std::size_t window = 32;
  // A sample counts for so many later ones: peers that have left do not count for ever.
  static constexpr std::uint64_t max_age = 8 * window;
  // The first bound, in later ones.
  static constexpr double first_multiple = 5;

  // `samples`: how many are needed before there is more than a first bound, at most `window`.
  DistanceBound(double multiple, std::size_t samples, std::size_t peers);

  void set_peers(std::size_t peers);

  std::optional<double> get() const;
  // There are enough samples, so that it is not the first one.
  bool settled() const { return samples_.size() >= needed_; }
  // That there is none yet is because no other peer has been heard, of which there are some.
  bool waits_for_another() const { return peers_ > 1 && !get(); }
  // The bound that this distance is held against; it counts for later ones. One that is zero (two
  // nodes that have not trained since they met) or NaN (the own parameters are not finite) says
  // nothing and is left out.
  std::optional<double> observe(PeerId peer, double distance);
  // The peer is another process than before.
  void restarted(PeerId peer);
  // Another has this place.
  void forget(PeerId peer);

 private:
  struct Sample {
    PeerId peer;
    double distance;
    std::uint64_t number;
  };

  // What a peer last came with; that too is old after `max_age` samples.
  struct Last {
    double distance = 0;
    std::uint64_t number = 0;
    bool was_near = false;    // within the bound, ever
    bool is_another = false;  // process than when it was near
  };

  std::optional<double> first_bound() const;
  // The median of what the peers last came with, where most of that is beyond `bound`.
  std::optional<double> last_of_most_peers(double bound) const;

  const double multiple_;
  const std::size_t needed_;
  std::size_t peers_ = 0;
  std::size_t share_;            // of one peer in the window
  std::vector<Sample> samples_;  // oldest first
  PerPeer<Last> last_;           // of those that have been heard
  std::uint64_t count_ = 0;      // of all that were observed
};

}  // namespace dpwa

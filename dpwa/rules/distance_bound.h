#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dpwa/base/median.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// How far away a peer's parameters may be: tau of ClippedGossip (He, Karimireddy, Jaggi 2022),
// taken as a multiple of the median of recent distances. Each peer has at most its share of the
// samples, and a distance beyond the bound enters the window as the bound. So only half of the
// samples can move the bound: liars that are fewer than half of the peers cannot, while the bound
// follows growing honest distances within half a window.
//
// A node that was separated from the others for a long time recovers faster. When the last
// distances of more than half of the peers, and of at least two, are beyond the bound, this node
// itself is far away. Then the median of the peers' last distances, which is no larger than an
// honest one, replaces the median of the window. Only peers that have been within the bound count.
// A restarted process may have begun with a liar's weights: it counts as near until it has been
// near again.
//
// Before there are enough samples, a wider bound holds as soon as two peers have been heard:
// `first_multiple` times as wide, because distances grow fast in the first steps, and based on the
// lower median of the peers' last distances. A single peer gives no bound: it may be the liar.
//
// The bound is never below `multiple` times the distance that rounding alone can make between equal
// models (`Floor`): in half precision the models of a run that has converged differ by nothing
// else, often by a few small values, and the next step of one of them would be far beyond that.
// Pure; one owner, one thread.
class DistanceBound {
 public:
  static constexpr std::size_t window = 32;
  // A sample is dropped after this many later ones, so that peers that have left stop counting.
  static constexpr std::uint64_t max_age = 8 * window;
  // The bound of a node, as a multiple of the median, and the distances that it needs first.
  static constexpr double usual_multiple = 2;
  static constexpr std::uint32_t usual_samples = 8;
  // The first bound, as a multiple of the later one.
  static constexpr double first_multiple = 5;

  // `samples`: how many are needed before there is more than a first bound, at most `window`.
  DistanceBound(double multiple, std::size_t samples, std::size_t peers);

  void set_peers(std::size_t peers);

  std::optional<double> get() const;
  // There are enough samples: the first, wider bound no longer applies.
  bool settled() const { return samples_.size() >= needed_; }
  // There is no bound yet only because a second peer has not been heard, although there are others.
  bool waits_for_another() const { return peers_ > 1 && !get(); }
  // The distance that rounding can make. It reads the whole model, so it is asked for only for a
  // distance that would be beyond the bound. Empty: none.
  using Floor = std::function<double()>;

  // Returns the bound for this distance; the distance then counts for later bounds. A distance of
  // zero (two nodes that have not trained since they met) or NaN (the own parameters are not
  // finite) is left out.
  std::optional<double> observe(PeerId peer, double distance, const Floor& floor = {});
  // Whether the last distances of most peers other than this one are within `bound`: where many
  // seem far away, it is this node that is. Those from before lose_sight() tell nothing.
  bool most_others_are_within(PeerId peer, double bound) const;
  // This node has moved alone for long: how near the others were does not say how near they are.
  void lose_sight() { seen_after_ = count_; }
  // The peer is another process than before.
  void restarted(PeerId peer);
  // Another has this place.
  void forget(PeerId peer);

 private:
  friend struct InvariantTest<DistanceBound>;
  struct Sample {
    PeerId peer;
    double distance;
    std::uint64_t number;
  };

  // The last distance of a peer; it expires after `max_age` samples too.
  struct Last {
    double distance = 0;
    std::uint64_t number = 0;
    bool was_near = false;    // within the bound, ever
    bool is_another = false;  // process than when it was near
  };

  bool is_recent(const Last& last) const { return count_ - last.number <= max_age; }
  std::optional<double> first_bound() const;
  // The median of the peers' last distances, when most of them are beyond `bound`.
  std::optional<double> last_of_most_peers(double bound) const;

  const double multiple_;
  const std::size_t needed_;
  std::size_t peers_ = 0;
  std::size_t share_;            // of one peer in the window
  std::vector<Sample> samples_;  // oldest first
  PerPeer<Last> last_;           // of those that have been heard
  std::uint64_t count_ = 0;      // of all that were observed
  std::uint64_t seen_after_ = 0;
};

}  // namespace dpwa

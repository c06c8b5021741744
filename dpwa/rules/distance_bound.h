#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// The median; of an even number of values the lower of the two in the middle. Reorders `values`,
// which must not be empty.
inline double lower_median(std::span<double> values) {
  DPWA_INVARIANT(!values.empty(), "a median is of some values");
  const auto median = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), median, values.end());
  return *median;
}

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
  // Returns the bound for this distance; the distance then counts for later bounds. A distance of
  // zero (two nodes that have not trained since they met) or NaN (the own parameters are not
  // finite) is left out.
  std::optional<double> observe(PeerId peer, double distance);
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
};

// The peers that are grossly far away again and again without coming nearer. A node that was
// suspended or cut off is far from all others when it is back, and comes nearer with every blend of
// its own: each of the others finds it far away once or twice before that. Pure; one owner, one
// thread.
class Outliers {
 public:
  // The number of such distances in a row, this one included; 0 when it is not one of them.
  unsigned observe(PeerId peer, double distance, bool gross) {
    if (!gross) {
      last_.erase(peer);
      return 0;
    }
    Last& last = last_[peer];
    const bool nearer = last.in_a_row > 0 && distance < coming_nearer * last.distance;
    last.distance = distance;
    return nearer ? 0 : ++last.in_a_row;
  }
  void forget(PeerId peer) { last_.erase(peer); }

 private:
  static constexpr double coming_nearer = 0.9;
  struct Last {
    double distance = 0;
    unsigned in_a_row = 0;
  };
  PerPeer<Last> last_;  // of those whose last distance was one
};

// Notices when nothing has been pulled for much longer than usual: one pull of a stopped peer may
// take its whole deadline. Meanwhile all nodes have moved, so earlier distances mean nothing. Pure:
// time is an argument; one owner, one thread.
class Lulls {
 public:
  // A snapshot has landed; whether a lull lies before it.
  bool ends(TimePoint now) {
    const bool first = landings_ == 0;
    const std::chrono::duration<double> since = first ? Duration::zero() : now - last_;
    last_ = now;
    const bool lull = landings_ > samples && since.count() > longest * mean_;
    const double interval = lull ? longest * mean_ : since.count();
    if (!first) mean_ += (interval - mean_) / std::min<double>(samples, landings_);
    ++landings_;
    return lull;
  }
  // The usual time between two of them; zero before the second.
  Duration interval() const {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(mean_));
  }

 private:
  static constexpr unsigned samples = 8;  // of the moving mean; so many are needed
  static constexpr double longest = 8;    // interval that is no lull, in means
  unsigned landings_ = 0;
  double mean_ = 0;  // interval, in seconds
  TimePoint last_{};
};

// How far apart the clocks of this node and each peer are, in steps. A gap much larger than usual
// explains a large distance: one of the two nodes stood still. But clocks are only claims. Pure;
// one owner, one thread.
class ClockGaps {
 public:
  // Notes the gap of a snapshot that was near.
  void usual(PeerId peer, double gap) {
    if (!std::isfinite(gap)) return;
    double& mean = usual_.at_or(peer, std::abs(gap));
    mean += (std::abs(gap) - mean) / samples;
  }
  bool is_unusual(PeerId peer, double gap) const {
    const double* usual = usual_.find(peer);
    return usual != nullptr && std::abs(gap) > 2 * *usual + 1;
  }
  void forget(PeerId peer) { usual_.erase(peer); }

 private:
  static constexpr double samples = 8;  // of the moving mean
  PerPeer<double> usual_;               // of those that have been near
};

}  // namespace dpwa

#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include "dpwa/base/time.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// Which peers are grossly far away again and again without coming nearer. A node that was suspended
// or cut off is far from all others when it is back, and comes nearer with every blend of its own:
// each of the others finds it far away once or twice before that. Pure; one owner, one thread.
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
  // Of a snapshot that was near.
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

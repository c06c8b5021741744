#include "dpwa/rules/firewall.h"

#include <algorithm>
#include <cmath>

#include "dpwa/base/invariant.h"

namespace dpwa {

void Firewall::put(PeerId peer) {
  peers_ = std::max<std::size_t>(peers_, std::size_t{peer} + 1);
  gross_.erase(peer);
  for (DistanceBound& bound : bounds_) {
    bound.set_peers(peers_);
    bound.forget(peer);
  }
}

void Firewall::replaced() {
  bounds_.clear();
  gross_.clear();
}

void Firewall::restarted(PeerId peer) {
  for (DistanceBound& bound : bounds_) bound.restarted(peer);
}

void Firewall::at_version(std::uint64_t own) {
  constexpr double many = 8;  // times as many as usual
  if (version_ != 0 && own > version_) {
    const auto steps = static_cast<double>(own - version_);
    if (steps > many * usual_steps_) {
      for (DistanceBound& bound : bounds_) bound.lose_sight();
    }
    usual_steps_ += (std::min(steps, 2 * usual_steps_) - usual_steps_) / many;
  }
  version_ = own;
}

bool Firewall::acts() const {
  return options_.distance == DistancePolicy::clip || options_.distance == DistancePolicy::refuse;
}

DistanceVerdict Firewall::judge(PeerId peer, unsigned block, double distance,
                                const DistanceBound::Floor& floor) {
  DPWA_INVARIANT(block < max_blocks, "a distance is of a block of the model", block, peer);
  DistanceVerdict verdict;
  if (std::isinf(distance)) {
    if (block < bounds_.size()) verdict.bound = bounds_[block].get().value_or(0);
    verdict.beyond = verdict.refused = verdict.gross = verdict.offends = true;
    ++counters_.refused;
    return verdict;
  }
  if (options_.distance == DistancePolicy::off) return verdict;
  while (bounds_.size() <= block)
    bounds_.emplace_back(DistanceBound::usual_multiple, DistanceBound::usual_samples, peers_);
  DistanceBound& bound = bounds_[block];
  // Until then, only a gross distance is beyond the bound.
  const double gross = bound.settled() ? gross_bounds : 1;
  verdict.bound = bound.observe(peer, distance, floor).value_or(0);
  verdict.beyond = verdict.bound > 0 && distance > verdict.bound;
  verdict.gross = verdict.beyond && distance > gross * verdict.bound &&
                  bound.most_others_are_within(peer, verdict.bound);
  if (verdict.gross) {
    verdict.offends = ++gross_[peer] >= offends_after;
  } else {
    gross_.erase(peer);
  }
  if (distance > 0 && verdict.bound == 0 && bound.waits_for_another()) verdict.unproven = acts();
  if (!verdict.beyond) return verdict;
  if (options_.distance == DistancePolicy::warn) {
    ++counters_.warned;
  } else if (options_.distance == DistancePolicy::clip && !verdict.gross) {
    ++counters_.clipped;
    verdict.scale = gross / gross_bounds * verdict.bound / distance;
  } else {
    ++counters_.refused;
    verdict.refused = true;
  }
  return verdict;
}

}  // namespace dpwa

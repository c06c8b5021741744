#include "dpwa/rules/firewall.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dpwa/base/invariant.h"

namespace dpwa {

Firewall::Firewall(const FirewallOptions& options, std::size_t peers)
    : options_(options), peers_(peers), quarantine_(options) {}

void Firewall::put(PeerId peer) {
  peers_ = std::max<std::size_t>(peers_, std::size_t{peer} + 1);
  standings_.erase(peer);
  set_near(peer);
  quarantine_.forget(peer);
  for (DistanceBound& bound : bounds_) {
    bound.set_peers(peers_);
    bound.forget(peer);
  }
  for (Outliers& outliers : outliers_) outliers.forget(peer);
  clock_gaps_.forget(peer);
}

void Firewall::restarted(PeerId peer) {
  for (DistanceBound& bound : bounds_) bound.restarted(peer);
}

bool Firewall::acts() const {
  return options_.distance == DistancePolicy::clip || options_.distance == DistancePolicy::refuse;
}

DistanceVerdict Firewall::judge_infinite(PeerId peer, unsigned block) {
  DistanceVerdict verdict;
  if (block < bounds_.size()) verdict.bound = bounds_[block].get().value_or(0);
  verdict.beyond = verdict.refused = verdict.gross = true;
  judge_outlier(peer, block, std::numeric_limits<double>::infinity(), 0, verdict);
  ++counters_.refused;
  return verdict;
}

void Firewall::judge_outlier(PeerId peer, unsigned block, double distance, double clock_gap,
                             DistanceVerdict& verdict) {
  if (block >= outliers_.size()) outliers_.resize(block + 1);
  const unsigned in_a_row = outliers_[block].observe(peer, distance, verdict.gross);
  if (!verdict.beyond) {
    clock_gaps_.usual(peer, clock_gap);
    set_near(peer);
  }
  const bool explained = is_after_lull(peer) || clock_gaps_.is_unusual(peer, clock_gap);
  verdict.reported = in_a_row >= (explained ? explained_until : reported_after);
  const bool offends = in_a_row >= (explained ? explained_until : 1);
  standings_[peer] = offends          ? Standing::offending
                     : verdict.beyond ? Standing::beyond
                                      : Standing::within;
}

DistanceVerdict Firewall::judge(PeerId peer, unsigned block, double distance, double clock_gap) {
  DPWA_INVARIANT(block < max_blocks, "a distance is of a block of the model", block, peer);
  if (std::isinf(distance)) return judge_infinite(peer, block);
  DistanceVerdict verdict;
  if (options_.distance == DistancePolicy::off) return verdict;
  while (bounds_.size() <= block)
    bounds_.emplace_back(DistanceBound::usual_multiple, DistanceBound::usual_samples, peers_);
  // Until then, only a gross distance is beyond the bound.
  const double gross = bounds_[block].settled() ? gross_bounds : 1;
  verdict.bound = bounds_[block].observe(peer, distance).value_or(0);
  verdict.beyond = verdict.bound > 0 && distance > verdict.bound;
  verdict.gross = verdict.beyond && distance > gross * verdict.bound;
  if (distance > 0 && verdict.bound == 0 && bounds_[block].waits_for_another()) {
    verdict.unproven = acts();
    return verdict;
  }
  judge_outlier(peer, block, distance, clock_gap, verdict);
  if (!verdict.beyond) return verdict;
  if (options_.distance == DistancePolicy::warn) {
    ++counters_.warned;
  } else if (options_.distance == DistancePolicy::clip) {
    ++counters_.clipped;
    verdict.scale = gross / gross_bounds * verdict.bound / distance;
  } else {
    ++counters_.refused;
    verdict.refused = true;
  }
  return verdict;
}

void Firewall::replaced() {
  bounds_.clear();
  outliers_.clear();
  standings_.clear();
}

std::optional<TimePoint> Firewall::succeeded(PeerId peer, const DistanceVerdict& verdict,
                                             TimePoint now) {
  landed(peer, now);
  const bool clipped = verdict.scale < 1;
  if (clipped && verdict.gross) return offended(peer, now);
  quarantine_.sound(peer);
  return std::nullopt;
}

std::optional<TimePoint> Firewall::failed(PeerId peer, PeerFailure failure, TimePoint now) {
  switch (failure) {
    case PeerFailure::unusable:
      ++counters_.not_finite;
      return offence(peer, true, now);
    case PeerFailure::distant:
      landed(peer, now);
      return offended(peer, now);
    case PeerFailure::protocol:
      return offence(peer, false, now);
    default:
      return std::nullopt;
  }
}

std::optional<TimePoint> Firewall::offence(PeerId peer, bool deliberate, TimePoint now) {
  return quarantine_.offence(peer, deliberate, now, quarantine_landings * lulls_.interval());
}

std::optional<TimePoint> Firewall::offended(PeerId peer, TimePoint now) {
  const Standing* standing = standings_.find(peer);
  const bool offends = standing != nullptr && *standing == Standing::offending;
  if (!offends || !most_others_are_within(peer)) return std::nullopt;
  return offence(peer, true, now);
}

void Firewall::landed(PeerId peer, TimePoint now) {
  if (!lulls_.ends(now)) return;
  lull_ended_ = true;
  near_.clear();
  const Standing* standing = standings_.find(peer);
  if (standing == nullptr) return standings_.clear();
  const Standing kept = *standing;
  standings_.clear();
  standings_[peer] = kept;
}

void Firewall::set_near(PeerId peer) {
  if (lull_ended_) near_.insert(peer);
}

bool Firewall::is_after_lull(PeerId peer) const {
  return lull_ended_ && !near_.contains(peer);
}

bool Firewall::most_others_are_within(PeerId peer) const {
  int balance = 0;
  for (const auto& [other, standing] : standings_.entries()) {
    if (other != peer) balance += standing == Standing::within ? 1 : -1;
  }
  return balance > 0;
}

}  // namespace dpwa

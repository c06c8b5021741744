#include "dpwa/core/firewall.h"

#include <algorithm>
#include <cmath>

namespace dpwa {

Firewall::Firewall(const FirewallOptions& options, std::size_t peers)
    : options_(options), standings_(peers, Standing::unknown), quarantine_(options, peers) {}

void Firewall::put(PeerId peer) {
  if (peer >= standings_.size()) standings_.resize(peer + 1, Standing::unknown);
  standings_[peer] = Standing::unknown;
  quarantine_.put(peer);
  for (DistanceBound& bound : bounds_) {
    bound.set_peers(standings_.size());
    bound.forget(peer);
  }
}

void Firewall::restarted(PeerId peer) {
  for (DistanceBound& bound : bounds_) bound.restarted(peer);
}

DistanceVerdict Firewall::judge(PeerId peer, unsigned block, double distance) {
  DistanceVerdict verdict;
  if (options_.distance == DistancePolicy::off) return verdict;
  while (bounds_.size() <= block)
    bounds_.emplace_back(options_.distance_multiple, options_.distance_samples, standings_.size());
  verdict.bound = bounds_[block].observe(peer, distance).value_or(0);
  verdict.beyond = verdict.bound > 0 && distance > verdict.bound;
  verdict.gross = verdict.beyond && distance > gross_bounds * verdict.bound;
  standings_.at(peer) = verdict.gross    ? Standing::gross
                        : verdict.beyond ? Standing::beyond
                                         : Standing::within;
  if (!verdict.beyond) return verdict;
  if (options_.distance == DistancePolicy::warn) {
    ++counters_.warned;
  } else if (options_.distance == DistancePolicy::clip && std::isfinite(distance)) {
    ++counters_.clipped;
    verdict.scale = verdict.bound / distance;
  } else {
    ++counters_.refused;
    verdict.refused = true;
  }
  return verdict;
}

DistanceVerdict Firewall::judge_final(double distance) {
  DistanceVerdict verdict;
  const bool acts =
      options_.distance == DistancePolicy::clip || options_.distance == DistancePolicy::refuse;
  if (!acts || bounds_.empty()) return verdict;
  double squares = 0;
  for (const DistanceBound& block : bounds_) {
    const auto bound = block.get();
    if (!bound) return verdict;
    squares += *bound * *bound;
  }
  verdict.bound = gross_bounds * std::sqrt(squares);
  verdict.beyond = distance > verdict.bound;
  verdict.refused = verdict.beyond;
  if (verdict.refused) ++counters_.refused;
  return verdict;
}

void Firewall::replaced() {
  bounds_.clear();
  std::ranges::fill(standings_, Standing::unknown);
}

std::optional<TimePoint> Firewall::succeeded(PeerId peer, const DistanceVerdict& verdict,
                                             TimePoint now) {
  const bool clipped = verdict.scale < 1;
  if (clipped && verdict.gross) return failed(peer, PeerFailure::distant, now);
  quarantine_.sound(peer);
  return std::nullopt;
}

std::optional<TimePoint> Firewall::failed(PeerId peer, PeerFailure failure, TimePoint now) {
  switch (failure) {
    case PeerFailure::unusable:
      ++counters_.not_finite;
      return quarantine_.offence(peer, true, now);
    case PeerFailure::distant:
      if (standings_.at(peer) != Standing::gross || !most_others_are_within(peer))
        return std::nullopt;
      return quarantine_.offence(peer, true, now);
    case PeerFailure::protocol:
      return quarantine_.offence(peer, false, now);
    default:
      return std::nullopt;
  }
}

bool Firewall::most_others_are_within(PeerId peer) const {
  int balance = 0;
  for (PeerId other = 0; other < standings_.size(); ++other) {
    if (other == peer || standings_[other] == Standing::unknown) continue;
    balance += standings_[other] == Standing::within ? 1 : -1;
  }
  return balance > 0;
}

}  // namespace dpwa

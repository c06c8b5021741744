#include "dpwa/gossip/start_comparison.h"

#include <chrono>
#include <cmath>

#include "dpwa/rules/lower_median.h"

namespace dpwa {

std::optional<double> StartComparison::median(std::vector<PeerId> witnesses, std::uint32_t samples,
                                              std::uint64_t lineage) {
  std::vector<double> distances;
  std::uint32_t taken = 0;
  std::erase_if(witnesses, [&](PeerId witness) {
    const auto distance = distance_to(witness, lineage);
    if (!distance) return true;
    distances.push_back(*distance);
    const bool counts = *distance > 0;  // not of whoever brought these weights and stands still
    taken += counts ? 1 : 0;
    return !counts;
  });
  if (distances.size() < 3) return std::nullopt;
  while (taken < samples && !witnesses.empty()) {
    std::erase_if(witnesses, [&](PeerId witness) {
      return taken < samples && (++taken, !distance_to(witness, lineage));
    });
  }
  return lower_median(distances);
}

std::optional<double> StartComparison::distance_to(PeerId witness, std::uint64_t lineage) {
  double sum = 0;
  for (unsigned block = 0; block < blocks_.size(); ++block) {
    const auto squared = squared_distance_to(witness, block, lineage);
    if (!squared) return std::nullopt;
    sum += *squared;
  }
  return std::sqrt(sum);
}

std::optional<double> StartComparison::squared_distance_to(PeerId witness, unsigned block,
                                                           std::uint64_t lineage) {
  if (std::chrono::steady_clock::now() >= until_) return std::nullopt;
  PullSpec spec;
  spec.peer = witness;
  spec.block = block;
  if (blocks_.size() > 1) spec.range = blocks_[block];
  spec.timeout = timeout_;
  spec.exchange = compare_only;
  if (!client_.begin(spec)) return std::nullopt;
  const auto arrival = client_.take(timeout_ * 2);
  if (!arrival || arrival->outcome != Outcome::mixed) return std::nullopt;
  if (arrival->progress.lineage != lineage) return std::nullopt;
  return arrival->stats.squared_distance;
}

}  // namespace dpwa

#include "dpwa/core/distance_bound.h"

#include <algorithm>
#include <array>

namespace dpwa {

DistanceBound::DistanceBound(double multiple, std::size_t samples, std::size_t peers)
    : multiple_(multiple), needed_(std::clamp<std::size_t>(samples, 1, window)), share_(0) {
  set_peers(peers);
  samples_.reserve(window + 1);
}

void DistanceBound::set_peers(std::size_t peers) {
  share_ = std::max(needed_, (window + peers - 1) / std::max<std::size_t>(1, peers));
}

std::optional<double> DistanceBound::get() const {
  if (samples_.size() < needed_) return std::nullopt;
  std::array<double, window> distances{};
  const auto end = std::ranges::transform(samples_, distances.begin(), &Sample::distance).out;
  // The lower of two in the middle: of two peers, the nearer one.
  const auto median = distances.begin() + static_cast<std::ptrdiff_t>((samples_.size() - 1) / 2);
  std::nth_element(distances.begin(), median, end);
  return multiple_ * *median;
}

void DistanceBound::observe(PeerId peer, double distance) {
  if (!(distance > 0)) return;
  if (const auto bound = get()) distance = std::min(distance, *bound);
  const std::uint64_t number = next_++;
  std::erase_if(samples_, [number](const Sample& old) { return number - old.number > max_age; });
  const auto own = static_cast<std::size_t>(std::ranges::count(samples_, peer, &Sample::peer));
  if (own >= share_) {
    samples_.erase(std::ranges::find(samples_, peer, &Sample::peer));
  } else if (samples_.size() == window) {
    samples_.erase(samples_.begin());
  }
  samples_.push_back({peer, distance, number});
}

}  // namespace dpwa

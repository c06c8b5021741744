#include "dpwa/rules/distance_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace dpwa {

DistanceBound::DistanceBound(double multiple, std::size_t samples, std::size_t peers)
    : multiple_(multiple), needed_(std::clamp<std::size_t>(samples, 1, window)), share_(0) {
  set_peers(peers);
  samples_.reserve(window + 1);
}

void DistanceBound::set_peers(std::size_t peers) {
  peers_ = peers;
  share_ = std::max(needed_, (window + peers - 1) / std::max<std::size_t>(1, peers));
}

std::optional<double> DistanceBound::get() const {
  if (!settled()) return first_bound();
  std::array<double, window> distances{};
  DPWA_INVARIANT(samples_.size() <= window, "the window has room for all samples", samples_.size());
  const auto end = std::ranges::transform(samples_, distances.begin(), &Sample::distance).out;
  const double bound = multiple_ * lower_median(std::span(distances.begin(), end));
  const auto last = last_of_most_peers(bound);
  return last ? multiple_ * *last : bound;
}

std::optional<double> DistanceBound::first_bound() const {
  std::vector<double> distances;
  for (const auto& [peer, last] : last_.entries()) distances.push_back(last.distance);
  if (distances.size() < 2) return std::nullopt;
  return first_multiple * multiple_ * lower_median(distances);
}

// No bound from a single peer, which might be the liar, nor from a distance too large for a number.
std::optional<double> DistanceBound::last_of_most_peers(double bound) const {
  const auto counts = [this](const Last& last) { return last.was_near && is_recent(last); };
  const auto distance_of = [](const Last& last) { return last.is_another ? 0 : last.distance; };
  std::size_t all = 0;
  std::size_t beyond = 0;
  for (const auto& [peer, last] : last_.entries()) {
    if (!counts(last)) continue;
    ++all;
    beyond += distance_of(last) > bound ? 1 : 0;
  }
  if (beyond < 2 || 2 * beyond <= all) return std::nullopt;
  std::vector<double> distances;
  for (const auto& [peer, last] : last_.entries()) {
    if (counts(last)) distances.push_back(distance_of(last));
  }
  const double median = lower_median(distances);
  return std::isfinite(median) ? std::optional(median) : std::nullopt;
}

std::optional<double> DistanceBound::observe(PeerId peer, double distance, const Floor& floor) {
  if (!(distance > 0)) return get();
  const std::uint64_t number = ++count_;
  Last& last = last_[peer];
  DPWA_INVARIANT(last.number < number, "distances are numbered in ascending order", last.number,
                 number, peer);
  last.distance = distance;
  last.number = number;
  auto bound = get();
  if (bound && distance > *bound && floor) bound = std::max(*bound, multiple_ * floor());
  if (bound ? distance <= *bound : peers_ <= 1) {
    last.was_near = true;
    last.is_another = false;
  }
  if (bound) {
    distance = std::min(distance, *bound);
    // Distances from before the bound existed entered the window unbounded.
    for (Sample& sample : samples_) {
      if (!settled()) sample.distance = std::min(sample.distance, *bound);
    }
  }
  std::erase_if(samples_, [number](const Sample& old) { return number - old.number > max_age; });
  const auto own = static_cast<std::size_t>(std::ranges::count(samples_, peer, &Sample::peer));
  if (own >= share_) {
    samples_.erase(std::ranges::find(samples_, peer, &Sample::peer));
  } else if (samples_.size() == window) {
    samples_.erase(samples_.begin());
  }
  samples_.push_back({peer, distance, number});
  return bound;
}

bool DistanceBound::most_others_are_within(PeerId peer, double bound) const {
  int balance = 0;
  for (const auto& [other, last] : last_.entries()) {
    const bool tells = is_recent(last) && last.number > seen_after_;
    if (other != peer && tells) balance += last.distance <= bound ? 1 : -1;
  }
  return balance > 0;
}

void DistanceBound::restarted(PeerId peer) {
  if (Last* last = last_.find(peer)) last->is_another = true;
}

void DistanceBound::forget(PeerId peer) {
  std::erase_if(samples_, [peer](const Sample& sample) { return sample.peer == peer; });
  last_.erase(peer);
}

}  // namespace dpwa

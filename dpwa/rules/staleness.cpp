#include "dpwa/rules/staleness.h"

#include <cmath>

namespace dpwa {

bool StalenessGuard::accept(PeerId peer, double peer_clock, double own_clock, TimePoint now) {
  if (!std::isfinite(peer_clock) || !std::isfinite(own_clock)) return false;

  const auto [found, first] = sightings_.try_emplace(peer, Sighting{peer_clock, own_clock, now});
  Sighting& sighting = found->second;
  // A clock that goes down moves as well: restarts and blends lower it.
  if (!first && sighting.peer_clock != peer_clock) sighting = {peer_clock, own_clock, now};
  if (sighting.own_clock != own_clock) sighting.own_moved = true;

  const bool stale = options_.max_staleness > 0 && own_clock - peer_clock > options_.max_staleness;
  const bool counts_steps = peer_clock + 1 != peer_clock;
  const bool frozen = options_.max_frozen > Duration::zero() && sighting.own_moved &&
                      counts_steps && now - sighting.since >= options_.max_frozen;
  return !stale && !frozen;
}

}  // namespace dpwa

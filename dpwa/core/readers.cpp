#include "dpwa/core/readers.h"

#include <algorithm>

namespace dpwa {

bool Readers::may_begin(const std::string& peer, TimePoint now) const {
  if (in_flight_ >= most_) return false;
  const auto account = accounts_.find(peer);
  if (account == accounts_.end()) return true;
  return account->second.in_flight < per_peer && account->second.busy_until <= now;
}

void Readers::begin(const std::string& peer) {
  ++accounts_[peer].in_flight;  // may throw
  ++in_flight_;
}

void Readers::end(const std::string& peer, Duration held, bool whole, TimePoint now) {
  Account& account = accounts_[peer];
  --in_flight_;
  --account.in_flight;
  if (whole) {
    account.stalls = 0;
  } else {
    const Duration pause = 3 * std::min(held, longest_pause);
    const unsigned doublings = std::min(account.stalls, 6U);
    account.busy_until =
        std::max(account.busy_until, now + std::min(longest_pause, pause * (1U << doublings)));
    if (held >= stall) ++account.stalls;
  }
  if (account.in_flight == 0 && account.stalls == 0 && account.busy_until <= now)
    accounts_.erase(peer);
}

}  // namespace dpwa

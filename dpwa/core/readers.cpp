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
  forget_idle(now);
}

void Readers::forget_idle(TimePoint now) {
  if (now >= next_forgetting_) {
    std::erase_if(accounts_, [now](const auto& entry) {
      return entry.second.in_flight == 0 && entry.second.busy_until + memory <= now;
    });
    next_forgetting_ = now + memory;
  }
  // One end() adds at most one idle account, so that one goes.
  if (accounts_.size() <= max_remembered) return;
  const auto first = std::ranges::min_element(accounts_, {}, [](const auto& entry) {
    return entry.second.in_flight > 0 ? TimePoint::max() : entry.second.busy_until;
  });
  if (first->second.in_flight == 0) accounts_.erase(first);
}

}  // namespace dpwa

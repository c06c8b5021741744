#include "dpwa/rules/readers.h"

#include <algorithm>

#include "dpwa/base/backoff.h"

namespace dpwa {

namespace {

using Counts = std::map<std::string, std::uint32_t>;

std::uint32_t count_of(const Counts& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

void count_down(Counts& counts, const std::string& key) {
  const auto found = counts.find(key);
  DPWA_INVARIANT(found != counts.end() && found->second > 0,
                 "a reply that ends was counted when it began", key);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

bool Readers::may_begin(const Caller& caller, TimePoint now) const {
  if (in_flight_ >= most_) return false;
  if (count_of(of_network_, caller.network) >= most_ - most_ / 4) return false;
  if (count_of(of_caller_, caller.account) >= per_peer) return false;
  const auto account = accounts_.find(caller.standing);
  return account == accounts_.end() || account->second.busy_until <= now;
}

void Readers::begin(const Caller& caller) {
  DPWA_INVARIANT(in_flight_ < most_, "no more replies begin than there may be", in_flight_, most_);
  // Each of these may throw, so all of them come before the first is counted.
  Account& account = accounts_[caller.standing];
  std::uint32_t& of_caller = of_caller_[caller.account];
  std::uint32_t& of_network = of_network_[caller.network];
  ++account.in_flight;
  ++of_caller;
  ++of_network;
  ++in_flight_;
}

void Readers::end(const Caller& caller, Duration held, bool whole, TimePoint now) {
  const auto found = accounts_.find(caller.standing);
  DPWA_INVARIANT(found != accounts_.end(), "a reply that ends has begun", caller.standing);
  Account& account = found->second;
  DPWA_INVARIANT(account.in_flight > 0 && account.in_flight <= in_flight_,
                 "the replies of a caller are some of all", account.in_flight, in_flight_);
  --in_flight_;
  --account.in_flight;
  count_down(of_caller_, caller.account);
  count_down(of_network_, caller.network);
  if (whole) {
    account.stalls = caller.is_known || account.stalls == 0 ? 0 : account.stalls - 1;
  } else {
    const bool again = account.stalls == 0 || account.stalled <= now - held;
    if (held >= stall && again) ++account.stalls;
    if (held >= stall) account.stalled = now;
    const unsigned stalls = std::min(held >= stall ? account.stalls : account.stalls + 1, 7U);
    const Backoff pauses{3 * std::min(held, longest_pause), longest_pause};
    account.busy_until = std::max(account.busy_until, now + pauses.nominal(stalls));
  }
  if (account.in_flight == 0 && account.stalls == 0 && account.busy_until <= now)
    accounts_.erase(found);
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

#include "dpwa/kvstore/pending_updates.h"

#include <iterator>
#include <utility>

#include "dpwa/base/invariant.h"

namespace dpwa::kvstore {

void PendingUpdates::add(std::uint64_t version, std::uint64_t round_before,
                         std::vector<Waiter> waiters) {
  DPWA_INVARIANT(updates_.empty() || updates_.back().version < version,
                 "the backup stores versions in ascending order", version, updates_.back().version);
  updates_.push_back({version, round_before, std::move(waiters)});
}

// Sent again while it waits, so it has one answer: the list stays short.
void PendingUpdates::wait(const Waiter& waiter) {
  DPWA_INVARIANT(!updates_.empty(), "what is waited for is not stored yet", waiter.worker);
  for (Update& each : updates_) {
    std::erase_if(each.waiters, [&](const Waiter& other) {
      return other.worker == waiter.worker && other.kind == waiter.kind &&
             other.step == waiter.step;
    });
  }
  updates_.back().waiters.push_back(waiter);
}

std::optional<std::uint64_t> PendingUpdates::round_before() const {
  return updates_.empty() ? std::nullopt : std::optional(updates_.front().round_before);
}

std::vector<Waiter> PendingUpdates::stored(std::uint64_t version) {
  std::vector<Waiter> waiters;
  auto update = updates_.begin();
  for (; update != updates_.end() && update->version <= version; ++update) {
    waiters.insert(waiters.end(), std::make_move_iterator(update->waiters.begin()),
                   std::make_move_iterator(update->waiters.end()));
  }
  updates_.erase(updates_.begin(), update);
  return waiters;
}

}  // namespace dpwa::kvstore

// The choice of PeerTable: which peer to ask next, and whether any peer answers.

#include <algorithm>

#include "dpwa/base/invariant.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/sample.h"

namespace dpwa {
namespace {

// Answers, as far as is known, and may have something to blend.
bool sound(const PeerRecord& record, TimePoint now) {
  if (record.out || record.failures > 0) return false;
  if (record.rests_until > now) return false;
  return !record.last_failure || *record.last_failure == PeerFailure::busy;
}

}  // namespace

bool PeerTable::is_ordinary(const PeerRecord& record, TimePoint now) const {
  return sound(record, now) && record.retry_at <= now &&
         score_of(record, now) == flow_control_.initial;
}

// Inline: a choice calls the second for each peer that it looks at.
inline std::size_t PeerTable::ordinary() const {
  DPWA_INVARIANT(special_.size() <= size(), "those that are out or watched are peers",
                 special_.size(), size());
  return size() - special_.size();
}

inline const PerPeer<PeerRecord>::Entry& PeerTable::watched(std::uint32_t position) const {
  DPWA_INVARIANT(position < records_.size(), "a watched peer has a record", position,
                 records_.size());
  return records_.entries()[position];
}

// Expects a peer that has a record.
void PeerTable::watch(PeerId peer) {
  if (special_.contains(peer)) return;  // watched or out
  watched_.push_back(records_.position(peer));
  special_.insert(peer);
}

void PeerTable::unwatch(PeerId peer) {
  if (records_.find(peer) != nullptr) std::erase(watched_, records_.position(peer));
}

// Peers that are ordinary again need no watching.
void PeerTable::settle(TimePoint now) {
  std::erase_if(watched_, [&](std::uint32_t position) {
    const auto& [peer, record] = watched(position);
    if (!is_ordinary(record, now)) return false;
    special_.erase(peer);
    return true;
  });
}

bool PeerTable::cut_off(TimePoint now) const {
  return ordinary() == 0 && std::ranges::none_of(watched_, [&](std::uint32_t position) {
           return sound(watched(position).value, now);
         });
}

bool PeerTable::nobody_answers() const {
  return size() > 0 && ordinary() == 0 &&
         std::ranges::all_of(watched_, [&](std::uint32_t position) {
           return watched(position).value.failures > 0;
         });
}

std::vector<PeerFailure> PeerTable::last_failures() const {
  std::vector<PeerFailure> kinds;
  const auto add = [&kinds](PeerFailure failure) {
    if (std::ranges::find(kinds, failure) == kinds.end()) kinds.push_back(failure);
  };
  for (const auto& [peer, record] : records_.entries()) {
    if (record.failures > 0 && record.last_failure) {
      add(*record.last_failure);
    } else if (record.out && record.pulls_ok == 0 && !name(peer).empty()) {
      add(PeerFailure::unreachable);
    }
  }
  const auto never_there = [this](PeerId peer) {
    return records_.find(peer) == nullptr && at(peer).out && !name(peer).empty();
  };
  if (std::ranges::any_of(special_.peers(), never_there)) add(PeerFailure::unreachable);
  return kinds;
}

bool PeerTable::waits(const PeerRecord& record, bool cut_off, TimePoint now) const {
  const bool backs_off = record.retry_at > now && !(cut_off && tried_soon(record, now));
  const bool rests = record.rests_until > now && !cut_off;
  return backs_off || rests;
}

// Whether a node that is cut off asks this peer before the end of the peer's back-off.
bool PeerTable::tried_soon(const PeerRecord& record, TimePoint now) const {
  if (record.failures == 0 || record.last_failure == PeerFailure::rejected) return false;
  return now >= record.failed_at + cut_off_delay(*record.last_failure);
}

// At most 100 attempts a second in all, however many peers there are. An attempt at a silent peer
// takes the whole deadline, and a trainer with a step budget waits for it, so silent peers are
// asked more rarely.
Duration PeerTable::cut_off_delay(PeerFailure failure) const {
  const Duration shared = std::chrono::milliseconds(10) * size();
  const int share = failure == PeerFailure::timed_out ? 5 : 1;
  return std::min(backoff_.max, std::max(backoff_.initial, shared) * share);
}

// The numbers of these peers among the ordinary ones, ascending.
std::vector<PeerId> PeerTable::ordinary_among(std::span<const PeerId> peers) const {
  std::vector<PeerId> numbers;
  for (const PeerId peer : peers) {
    if (peer >= size() || special_.contains(peer)) continue;
    numbers.push_back(peer - static_cast<PeerId>(special_.count_before(peer)));
  }
  std::ranges::sort(numbers);
  const auto repeats = std::ranges::unique(numbers);
  numbers.erase(repeats.begin(), repeats.end());
  return numbers;
}

// The ordinary peers compete as one that draws their highest number. Which of them has it is drawn
// at the end: all are equally likely.
std::optional<PeerId> PeerTable::choose(std::span<const PeerId> excluded, TimePoint now,
                                        Random& random) const {
  const std::vector<PeerId> left_out = ordinary_among(excluded);
  const std::size_t all = ordinary();
  DPWA_INVARIANT(left_out.size() <= all, "those that are left out are ordinary peers",
                 left_out.size(), all);
  const std::size_t equals = all - left_out.size();
  double highest = 0;
  if (equals > 0) highest = highest_draw(equals, random);
  double best_value = flow_control_.initial + highest;
  std::optional<PeerId> best;  // of the watched ones
  std::uint64_t ties = 0;      // with best_value; 0: not counted yet
  const bool soon = cut_off(now);
  for (const std::uint32_t position : watched_) {
    const auto& [peer, record] = watched(position);
    if (waits(record, soon, now) || std::ranges::find(excluded, peer) != excluded.end()) continue;
    const double value = score_of(record, now) + draw(random);
    const bool first = equals == 0 && !best;
    if (first || value > best_value) {
      best = peer;
      best_value = value;
      ties = 1;
    } else if (value == best_value) {
      if (ties == 0) ties = draws_at_highest(highest, equals, random);
      if (random.below(++ties) == 0) best = peer;  // each of the best stays with probability 1/ties
    }
  }
  if (best || equals == 0) return best;
  return nth_absent(special_.peers(), nth_absent(left_out, random.below(equals)));
}

}  // namespace dpwa

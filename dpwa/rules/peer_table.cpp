#include "dpwa/rules/peer_table.h"

#include <algorithm>
#include <bit>

namespace dpwa {
namespace {

// A peer without capacity or parameters will have them shortly: ask again soon, however often it
// declined before.
constexpr Duration declined_delay = std::chrono::milliseconds(50);

// So many failures in a row mean that a peer is down, not just unreliable.
constexpr unsigned down_failures = 3;

// Between two times that a peer regains its score because it was reached beside the pulls: one that
// can be reached and never gives anything must not win favour by it.
constexpr Duration first_forgiveness = std::chrono::seconds(4);
constexpr Duration longest_forgiveness = std::chrono::minutes(1);

bool declined(PeerFailure failure) {
  return failure == PeerFailure::busy || failure == PeerFailure::not_ready ||
         failure == PeerFailure::stale || failure == PeerFailure::distant ||
         failure == PeerFailure::other_lineage;
}

// A call shows that the peer runs and can be reached again, not that it would answer differently.
bool ended_by_call(PeerFailure failure) {
  return failure != PeerFailure::rejected && !declined(failure);
}

// Answers, as far as is known, and may have something to blend.
bool sound(const PeerRecord& record, TimePoint now) {
  if (record.out || record.failures > 0) return false;
  if (record.held_until > now || record.rests_until > now) return false;
  return !record.last_failure || *record.last_failure == PeerFailure::busy;
}

void end_backoff(PeerRecord& record) {
  record.retry_at = TimePoint::min();
}

}  // namespace

PeerTable::PeerTable(const std::vector<std::string>& names, FlowControl flow_control,
                     Backoff backoff)
    : flow_control_(flow_control), backoff_(backoff) {
  peers_.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    peers_[i].name = names[i];
    peers_[i].score = flow_control_.initial;
    places_.emplace(names[i], static_cast<PeerId>(i));
  }
}

void PeerTable::put(PeerId peer, const std::string& name) {
  if (peer >= peers_.size()) peers_.resize(peer + 1);
  const auto before = places_.find(peers_[peer].name);
  if (before != places_.end() && before->second == peer) places_.erase(before);
  peers_[peer] = {};
  peers_[peer].name = name;
  places_.insert_or_assign(name, peer);
  peers_[peer].score = flow_control_.initial;
}

bool PeerTable::cut_off(TimePoint now) const {
  return std::ranges::none_of(peers_,
                              [now](const PeerRecord& record) { return sound(record, now); });
}

bool PeerTable::nobody_answers() const {
  return !peers_.empty() && std::ranges::all_of(peers_, [](const PeerRecord& record) {
    return record.out || record.failures > 0;
  });
}

// Whether a cut-off node asks this peer although its back-off lasts.
bool PeerTable::tried_soon(const PeerRecord& record, TimePoint now) const {
  if (record.failures == 0 || record.last_failure == PeerFailure::rejected) return false;
  return now >= record.failed_at + cut_off_delay(*record.last_failure);
}

// However many peers there are, no more than 100 tries a second in all. A silent peer costs its try
// the whole deadline, and a trainer with a step budget waits for it: that is asked more rarely.
Duration PeerTable::cut_off_delay(PeerFailure failure) const {
  const Duration shared = std::chrono::milliseconds(10) * peers_.size();
  const int share = failure == PeerFailure::timed_out ? 5 : 1;
  return std::min(backoff_.max, std::max(backoff_.initial, shared) * share);
}

std::optional<PeerId> PeerTable::choose(std::span<const PeerId> excluded, TimePoint now,
                                        Random& random) const {
  std::optional<PeerId> best;
  double best_value = 0;
  std::uint64_t ties = 0;
  const bool soon = cut_off(now);
  for (PeerId peer = 0; peer < peers_.size(); ++peer) {
    const PeerRecord& record = peers_[peer];
    const bool backs_off = record.retry_at > now && !(soon && tried_soon(record, now));
    const bool rests = record.rests_until > now && !soon;
    const bool waits = record.out || backs_off || rests || record.held_until > now;
    if (waits || std::ranges::find(excluded, peer) != excluded.end()) continue;
    const double value = score(peer, now) + static_cast<double>(10 + random.below(991));
    if (!best || value > best_value) {
      best = peer;
      best_value = value;
      ties = 1;
    } else if (value == best_value && random.below(++ties) == 0) {
      best = peer;  // reservoir of one: each of the k best stays with probability 1/k
    }
  }
  return best;
}

double PeerTable::score(PeerId peer, TimePoint now) const {
  const PeerRecord& record = peers_.at(peer);
  const std::chrono::duration<double> since = now - record.failed_at;
  return flow_control_.after_time(record.score, since.count());
}

void PeerTable::forgive(PeerRecord& record) const {
  record.score = std::max(record.score, flow_control_.initial);
}

void PeerTable::end_failures(PeerRecord& record) const {
  if (record.failures >= down_failures) forgive(record);
  record.failures = 0;
  record.forgiven = false;
}

void PeerTable::succeeded(PeerId peer, const Progress& progress) {
  PeerRecord& record = peers_.at(peer);
  end_failures(record);
  record.score = flow_control_.after_success(record.score);
  record.last_failure.reset();
  record.reached = 0;
  record.progress = progress;
  ++record.pulls_ok;
  end_backoff(record);
}

std::vector<Duration> PeerTable::times_of_others(PeerId peer,
                                                 std::optional<Duration> PeerRecord::*time) const {
  std::vector<Duration> others;
  for (PeerId other = 0; other < peers_.size(); ++other) {
    const PeerRecord& record = peers_[other];
    if (other != peer && !record.out && record.*time) others.push_back(*(record.*time));
  }
  return others;
}

void PeerTable::answered(PeerId peer, const AnswerTime& answer, TimePoint now) {
  PeerRecord& record = peers_.at(peer);
  if (answer.compares()) record.answer_time = answer.took;
  if (answer.complete) record.snapshot_time = answer.took;
  auto by_network = times_of_others(peer, &PeerRecord::answer_time);
  const bool late = is_late(answer, by_network);
  auto of_all = late ? times_of_others(peer, &PeerRecord::snapshot_time) : std::vector<Duration>();
  const bool rests = late && is_slower(answer, of_all);
  record.late_answers = static_cast<std::uint8_t>(record.late_answers << 1 | (rests ? 1 : 0));
  if (!late) return;
  record.score = flow_control_.after_failure(score(peer, now));
  record.failed_at = now;
  const auto lately = static_cast<unsigned>(std::popcount(record.late_answers));
  if (rests) record.rests_until = now + rest_after(answer.took, lately);
}

void PeerTable::failed(PeerId peer, PeerFailure failure, TimePoint now, Random& random) {
  PeerRecord& record = peers_.at(peer);
  if (failure == PeerFailure::unchanged || failure == PeerFailure::unproven) {
    end_failures(record);  // it answered, after all
    return;
  }
  record.last_failure = failure;
  ++record.pulls_failed;
  if (declined(failure)) {
    end_failures(record);  // it answered, after all
    const bool lasts = failure == PeerFailure::other_lineage;
    const Backoff pause{declined_delay, lasts ? backoff_.max : declined_delay, backoff_.jitter};
    record.retry_at = now + pause.delay(lasts ? ++record.other_lineages : 1, random);
    return;
  }
  record.score = flow_control_.after_failure(score(peer, now));
  record.failed_at = now;
  ++record.failures;
  const Backoff longest{backoff_.max, backoff_.max, backoff_.jitter};
  const bool final = failure == PeerFailure::rejected;
  record.retry_at = now + (final ? longest : backoff_).delay(record.failures, random);
}

void PeerTable::returned(PeerId peer, std::uint64_t incarnation) {
  PeerRecord& record = peers_.at(peer);
  if (incarnation > record.incarnation) {
    // What the last process did says nothing of the new one; its snapshots count anew as well.
    if (record.incarnation != 0) record.progress = {};
    record.answer_time.reset();
    record.snapshot_time.reset();
    record.incarnation = incarnation;
    record.score = flow_control_.initial;
    record.failures = 0;
    record.forgiven = false;
    record.last_failure.reset();
    end_backoff(record);
    return;
  }
  const bool outdated = incarnation != 0 && incarnation < record.incarnation;
  if (outdated || !record.last_failure || !ended_by_call(*record.last_failure)) return;
  end_backoff(record);
  if (record.failures >= down_failures && !record.forgiven) {
    forgive(record);
    record.forgiven = true;
  }
}

void PeerTable::introduced(PeerId peer, std::uint64_t incarnation) {
  PeerRecord& record = peers_.at(peer);
  if (incarnation < record.incarnation) record.incarnation = incarnation;
  returned(peer, incarnation);
}

void PeerTable::reached(PeerId peer, std::uint64_t incarnation, TimePoint now) {
  introduced(peer, incarnation);
  PeerRecord& record = peers_.at(peer);
  const bool forgivable = record.last_failure && ended_by_call(*record.last_failure);
  if (record.failures == 0 || !forgivable || now < record.reached_at) return;
  forgive(record);
  const Duration next = first_forgiveness * (1U << std::min(record.reached, 4U));
  record.reached_at = now + std::min(longest_forgiveness, next);
  ++record.reached;
}

std::optional<PeerId> PeerTable::choose_among(std::span<const PeerId> neighbours,
                                              std::span<const PeerId> excluded, TimePoint now,
                                              Random& random) const {
  std::optional<PeerId> best;
  double best_value = 0;
  std::uint64_t ties = 0;
  const bool soon = cut_off(now);
  for (const PeerId peer : neighbours) {
    if (peer >= size() || std::ranges::find(excluded, peer) != excluded.end()) continue;
    const PeerRecord& record = at(peer);
    const bool backs_off = record.retry_at > now && !(soon && tried_soon(record, now));
    const bool rests = record.rests_until > now && !soon;
    if (record.out || backs_off || rests || record.held_until > now) continue;
    const double value = score(peer, now) + static_cast<double>(10 + random.below(991));
    if (!best || value > best_value) {
      best = peer;
      best_value = value;
      ties = 1;
    } else if (value == best_value && random.below(++ties) == 0) {
      best = peer;
    }
  }
  return best;
}

std::optional<PeerId> PeerTable::find(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

}  // namespace dpwa

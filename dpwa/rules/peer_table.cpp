#include "dpwa/rules/peer_table.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace dpwa {
namespace {

// A peer without capacity or parameters will have them shortly: ask again soon, however often it
// declined before.
constexpr Duration declined_delay = std::chrono::milliseconds(50);

// This many failures in a row mean that a peer is down, not just unreliable.
constexpr unsigned down_failures = 3;

// Between two times that a peer regains its score because it was reached beside the pulls: one that
// can be reached and never gives anything must not win favour by it.
constexpr Backoff between_forgiveness{std::chrono::seconds(4), std::chrono::minutes(1)};

bool declined(PeerFailure failure) {
  return failure == PeerFailure::busy || failure == PeerFailure::not_ready ||
         failure == PeerFailure::stale || failure == PeerFailure::distant ||
         failure == PeerFailure::other_lineage;
}

bool is_offence(PeerFailure failure) {
  return failure == PeerFailure::unusable || failure == PeerFailure::protocol;
}

// A call shows that the peer runs and can be reached again, not that it would answer differently.
bool ended_by_call(PeerFailure failure) {
  return failure != PeerFailure::rejected && failure != PeerFailure::unusable && !declined(failure);
}

void end_backoff(PeerRecord& record) {
  record.retry_at = TimePoint::min();
}

}  // namespace

PeerTable::PeerTable(std::vector<std::string> names, FlowControl flow_control, Backoff backoff)
    : names_(std::move(names)), flow_control_(flow_control), backoff_(backoff) {
  DPWA_INVARIANT(
      flow_control_.min <= flow_control_.initial && flow_control_.initial <= flow_control_.max,
      "the first score is within the bounds of scores", flow_control_.min, flow_control_.initial,
      flow_control_.max);
  fresh_.score = flow_control_.initial;
  gone_ = fresh_;
  gone_.out = true;
  for (PeerId peer = 0; peer < names_.size(); ++peer) places_.emplace(names_[peer], peer);
}

void PeerTable::put(PeerId peer, const std::string& name) {
  if (peer >= size()) names_.resize(peer + std::size_t{1});
  if (find(names_[peer]) == peer) places_.erase(names_[peer]);
  names_[peer] = name;
  places_.insert_or_assign(name, peer);
  special_.erase(peer);
  if (records_.find(peer) == nullptr) return;
  unwatch(peer);
  // The last one moves to its position.
  const auto last = static_cast<std::uint32_t>(records_.size() - 1);
  std::ranges::replace(watched_, last, records_.position(peer));
  records_.erase(peer);
}

std::optional<PeerId> PeerTable::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void PeerTable::set_out(PeerId peer, bool out) {
  if (at(peer).out == out) return;
  if (out) unwatch(peer);
  PeerRecord* record = records_.find(peer);
  if (record != nullptr) record->out = out;
  if (out) {
    special_.insert(peer);
  } else {
    special_.erase(peer);
    if (record != nullptr) watch(peer);
  }
}

const PeerRecord& PeerTable::at(PeerId peer) const {
  if (peer >= size()) throw std::out_of_range("no such peer");
  const PeerRecord* record = records_.find(peer);
  if (record != nullptr) return *record;
  return special_.contains(peer) ? gone_ : fresh_;
}

PeerRecord& PeerTable::record(PeerId peer) {
  PeerRecord* record = records_.find(peer);
  return record != nullptr ? *record : records_.at_or(peer, at(peer));
}

double PeerTable::score(PeerId peer, TimePoint now) const {
  return score_of(at(peer), now);
}

double PeerTable::score_of(const PeerRecord& record, TimePoint now) const {
  DPWA_INVARIANT(record.score >= flow_control_.min && record.score <= flow_control_.max,
                 "a score is within the bounds of scores", record.score, flow_control_.min,
                 flow_control_.max);
  const std::chrono::duration<double> since = now - record.failed_at;
  return flow_control_.after_time(record.score, since.count());
}

void PeerTable::shares_lineage(PeerId peer) {
  if (PeerRecord* record = records_.find(peer)) record->other_lineages = 0;
}

void PeerTable::forgive(PeerRecord& record) const {
  record.score = std::max(record.score, flow_control_.initial);
}

void PeerTable::end_failures(PeerRecord& record) const {
  if (record.failures >= down_failures && !record.offended) forgive(record);
  record.failures = 0;
  record.forgiven = false;
}

void PeerTable::succeeded(PeerId peer, const Progress& progress) {
  PeerRecord& record = this->record(peer);
  record.offended = false;
  end_failures(record);
  record.score = flow_control_.after_success(record.score);
  if (record.score != flow_control_.initial) watch(peer);
  record.last_failure.reset();
  record.reached = 0;
  record.progress = progress;
  ++record.pulls_ok;
  ++pulls_ok_;
  end_backoff(record);
}

std::vector<Duration> PeerTable::times_of_others(PeerId peer, Time time) const {
  std::vector<Duration> others;
  for (const auto& [other, record] : records_.entries()) {
    if (other != peer && !record.out && record.*time) others.push_back(*(record.*time));
  }
  return others;
}

void PeerTable::answered(PeerId peer, const AnswerTime& answer, TimePoint now) {
  PeerRecord& record = this->record(peer);
  if (answer.compares()) record.answer_time = answer.took;
  if (answer.complete) record.snapshot_time = answer.took;
  bool late = false;
  bool rests = false;
  if (may_be_late(answer)) {
    auto by_network = times_of_others(peer, &PeerRecord::answer_time);
    late = is_late(answer, by_network);
  }
  if (late) {
    auto of_all = times_of_others(peer, &PeerRecord::snapshot_time);
    rests = is_slower(answer, of_all);
  }
  record.late_answers = static_cast<std::uint8_t>(record.late_answers << 1 | (rests ? 1 : 0));
  if (late) {
    record.score = flow_control_.after_failure(score_of(record, now));
    record.failed_at = now;
    const auto lately = static_cast<unsigned>(std::popcount(record.late_answers));
    if (rests) record.rests_until = now + rest_after(answer.took, lately);
    watch(peer);
  }
  settle(now);
}

void PeerTable::failed(PeerId peer, PeerFailure failure, TimePoint now, Random& random) {
  PeerRecord& record = this->record(peer);
  if (failure == PeerFailure::unchanged || failure == PeerFailure::not_fresh ||
      failure == PeerFailure::unproven) {
    end_failures(record);  // it answered, after all
    return;
  }
  watch(peer);
  record.last_failure = failure;
  ++record.pulls_failed;
  ++pulls_failed_;
  if (declined(failure)) {
    end_failures(record);  // it answered, after all
    const bool lasts = failure == PeerFailure::other_lineage;
    const Backoff pause{declined_delay, lasts ? backoff_.max : declined_delay, backoff_.jitter};
    record.retry_at = now + pause.delay(lasts ? ++record.other_lineages : 1, random);
    return;
  }
  record.score = flow_control_.after_failure(score_of(record, now));
  record.failed_at = now;
  ++record.failures;
  record.offended = record.offended || is_offence(failure);
  const Backoff longest{backoff_.max, backoff_.max, backoff_.jitter};
  const bool final = failure == PeerFailure::rejected;
  record.retry_at = now + (final ? longest : backoff_).delay(record.failures, random);
}

void PeerTable::returned(PeerId peer, std::uint64_t incarnation) {
  if (incarnation == 0 && records_.find(peer) == nullptr) return;
  PeerRecord& record = this->record(peer);
  if (incarnation > record.incarnation) {
    // The history of the last process does not apply to the new one, whose snapshots also count
    // from the start.
    if (record.incarnation != 0) record.progress = {};
    record.answer_time.reset();
    record.snapshot_time.reset();
    record.incarnation = incarnation;
    if (record.last_failure == PeerFailure::unusable) return;
    end_backoff(record);
    if (record.offended) return;
    record.score = flow_control_.initial;
    record.failures = 0;
    record.forgiven = false;
    record.last_failure.reset();
    return;
  }
  const bool outdated = incarnation != 0 && incarnation < record.incarnation;
  if (outdated || !record.last_failure || !ended_by_call(*record.last_failure)) return;
  end_backoff(record);
  if (record.failures >= down_failures && !record.forgiven && !record.offended) {
    forgive(record);
    record.forgiven = true;
  }
}

void PeerTable::introduced(PeerId peer, std::uint64_t incarnation) {
  PeerRecord* record = records_.find(peer);
  if (record != nullptr) record->incarnation = std::min(record->incarnation, incarnation);
  returned(peer, incarnation);
}

void PeerTable::reached(PeerId peer, std::uint64_t incarnation, TimePoint now) {
  introduced(peer, incarnation);
  PeerRecord& record = this->record(peer);
  const bool forgivable =
      record.last_failure && ended_by_call(*record.last_failure) && !record.offended;
  if (record.failures == 0 || !forgivable || now < record.reached_at) return;
  forgive(record);
  record.reached_at = now + between_forgiveness.nominal(++record.reached);
}

}  // namespace dpwa

#include "dpwa/rules/pull_round.h"

#include <algorithm>
#include <array>

namespace dpwa {
namespace {

// The outcome of a failure for the trainer. A peer that breaks the protocol was reached, but its
// answer is unusable.
Outcome outcome_of(PeerFailure failure) {
  switch (failure) {
    case PeerFailure::timed_out:
      return Outcome::timed_out;
    case PeerFailure::unreachable:
      return Outcome::unreachable;
    case PeerFailure::protocol:
    case PeerFailure::rejected:
    case PeerFailure::unusable:
    case PeerFailure::distant:
    case PeerFailure::other_lineage:
      return Outcome::rejected;
    case PeerFailure::stale:
      return Outcome::stale;
    case PeerFailure::unproven:
    case PeerFailure::unchanged:
    case PeerFailure::not_fresh:
      return Outcome::skipped;
    case PeerFailure::busy:
      return Outcome::busy;
    case PeerFailure::not_ready:
      return Outcome::not_ready;
  }
  return Outcome::skipped;
}

// How much an outcome tells the user; the highest of a round is reported.
auto rank(PeerFailure failure) {
  constexpr std::array rising{Outcome::skipped,  Outcome::not_ready,   Outcome::busy,
                              Outcome::stale,    Outcome::unreachable, Outcome::rejected,
                              Outcome::timed_out};
  return std::ranges::find(rising, outcome_of(failure)) - rising.begin();
}

}  // namespace

void PullRound::begin(TimePoint now, Duration timeout, std::optional<PeerId> only) {
  only_ = only;
  deadline_ = now + timeout;
  timeout_ = timeout;
  tried_.clear();
  current_.reset();
  answered_ = false;
  worst_.reset();
}

std::optional<PeerId> PullRound::next_peer(const PeerTable& table, TimePoint now, Random& random) {
  if (answered_ || now >= deadline_) return std::nullopt;
  if (only_) {
    current_ = tried_.empty() ? only_ : std::nullopt;
  } else {
    current_ = table.choose(tried_, now, random);
  }
  if (current_) {
    tried_.push_back(*current_);
  } else if (tried_.empty() && !only_ && table.nobody_answers()) {
    for (const PeerFailure failure : table.last_failures()) note(failure);  // why none was asked
  }
  asked_ = now;
  return current_;
}

void PullRound::note(PeerFailure failure) {
  if (!worst_ || rank(failure) > rank(*worst_)) worst_ = failure;
}

AnswerTime PullRound::answer(TimePoint now) const {
  return {now - asked_, timeout_};
}

void PullRound::succeeded(PeerTable& table, const Progress& progress, TimePoint now,
                          bool same_host) {
  DPWA_INVARIANT(current_ && !answered_, "the peer that answers is the one that is asked",
                 answered_, tried_.size());
  AnswerTime time = answer(now);
  time.complete = true;
  time.same_host = same_host;
  table.succeeded(*current_, progress);
  table.answered(*current_, time, now);
  answered_ = true;
}

void PullRound::failed(PeerTable& table, PeerFailure failure, TimePoint now, Random& random) {
  DPWA_INVARIANT(current_ && !answered_, "the peer that fails is the one that is asked", answered_,
                 tried_.size());
  table.failed(*current_, failure, now, random);
  if (takes_no_score(failure)) table.answered(*current_, answer(now), now);
  current_.reset();
  note(failure);
}

Outcome PullRound::outcome() const {
  if (answered_) return Outcome::mixed;
  return worst_ ? outcome_of(*worst_) : Outcome::skipped;
}

}  // namespace dpwa

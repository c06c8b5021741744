#include "dpwa/engine/pull_engine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/sample.h"
#include "dpwa/rules/staleness.h"

namespace dpwa {
namespace {

constexpr std::size_t max_greeted_strangers = 8;

// After this many rounds in which no peer had a fresh snapshot, a snapshot of any age is taken.
// Otherwise a node whose peers all pause would never blend.
constexpr unsigned most_declined_rounds = 50;
// Peers that are passed over in one round, before it ends.
constexpr int most_passed_over = 32;

// The snapshot arrived whole, and must not be blended.
bool kept_out(PeerFailure failure) {
  return failure == PeerFailure::unusable || failure == PeerFailure::distant;
}

bool is_out(const Member& member) {
  const MemberStatus status = member.status();
  return member.claim.name.empty() || status == MemberStatus::dead ||
         status == MemberStatus::left || !member.vouched_for();
}

std::string words_for(double distance, double bound) {
  if (std::isinf(distance)) return "sent parameters whose distance is too large for a number";
  char text[96];
  std::snprintf(text, sizeof text, "sent parameters at distance %.3g, where the bound is %.3g",
                distance, bound);
  return text;
}

std::string words_for(MemberStatus status) {
  switch (status) {
    case MemberStatus::alive:
      return "' is there";
    case MemberStatus::suspect:
      return "' does not answer";
    case MemberStatus::dead:
      return "' is gone: it is not pulled from until it is back";
    case MemberStatus::left:
      return "' has left";
  }
  return "'";
}

EventKind event_of(MemberStatus status) {
  switch (status) {
    case MemberStatus::alive:
      return EventKind::returned;
    case MemberStatus::suspect:
      return EventKind::suspected;
    case MemberStatus::dead:
      return EventKind::lost;
    case MemberStatus::left:
      break;
  }
  return EventKind::left;
}

void fail(Answer& answer, PeerFailure failure, std::string detail) {
  answer.failure = failure;
  answer.detail = std::move(detail);
}

}  // namespace

PullEngine::PullEngine(const PullEngineOptions& options, const std::vector<std::string>& peers)
    : table_(peers, FlowControl(), options.backoff),
      firewall_(options.firewall, table_.size()),
      staleness_(options.staleness),
      block_shares_(options.block_shares),
      random_(options.seed) {
  if (options.ledger_factor) ledger_.emplace(*options.ledger_factor);
}

void PullEngine::begin(const RoundSpec& spec) {
  DPWA_INVARIANT(!spec.block || *spec.block < max_blocks, "a pull is of a block of the model",
                 spec.block.value_or(0));
  spec_ = spec;
  phase_ = Phase::begun;
  arrival_ = {};
  arrival_.full = spec.exchange.whole_model;
}

PullEngine::Action PullEngine::next(double own_clock, TimePoint now) {
  if (phase_ == Phase::begun) {
    phase_ = Phase::waited;
    if (spec_.delay > Duration::zero() && !stopped_) return Wait{spec_.delay};
  }
  if (phase_ == Phase::waited) {
    phase_ = Phase::asking;
    began_ = now;
    not_fresh_ = false;
    round_.begin(now, spec_.timeout, spec_.peer);
    if (balances()) ledger_->begin_round(table_.size());
  }
  const auto peer = stopped_ ? std::nullopt : choose(now);
  if (!peer) return end(now);
  own_clock_ = own_clock;
  Ask ask{.peer = *peer, .left = round_.deadline() - now};
  if (!spec_.exchange.whole_model) {
    // Not the table's incarnation: any caller may raise that.
    const SeenBlocks& taken = seen(*peer);
    ask.known_incarnation = taken.incarnation();
    if (spec_.exchange.news_only)
      ask.known_version = taken.known_version(ask.known_incarnation, block());
  }
  if (ledger_ && declined_rounds_ < most_declined_rounds) ask.taken = ledger_->stated_to(*peer);
  return ask;
}

std::optional<PeerId> PullEngine::choose(TimePoint now) {
  auto peer = round_.next_peer(table_, now, random_);
  if (!balances()) return peer;
  for (int passed = 1; peer && ledger_->passes_over(*peer, random_); ++passed) {
    // Among many, one round need not find out that all of them are passed over.
    if (passed == most_passed_over) return std::nullopt;
    peer = round_.next_peer(table_, now, random_);
  }
  return peer;
}

Arrival PullEngine::end(TimePoint now) {
  arrival_.outcome = round_.outcome();
  if (arrival_.outcome == Outcome::mixed) {
    declined_rounds_ = 0;
  } else if (not_fresh_) {
    ++declined_rounds_;
  }
  arrival_.alone = table_.nobody_answers();
  arrival_.took = now - began_;
  return std::exchange(arrival_, {});
}

const SeenBlocks& PullEngine::seen(PeerId peer) const {
  static const SeenBlocks nothing;
  const auto found = memories_.find(peer);
  return found == memories_.end() ? nothing : found->second.seen;
}

std::optional<PeerFailure> PullEngine::head(const Progress& peer, std::uint64_t own_lineage) {
  DPWA_INVARIANT(round_.current(), "a head is of the answer of a peer that is asked", phase_);
  if (spec_.exchange.fresh_only && is_stale(staleness_, peer.clock, own_clock_))
    return PeerFailure::stale;
  if (spec_.exchange.blends() && peer.lineage != own_lineage) return PeerFailure::other_lineage;
  return std::nullopt;
}

std::optional<double> PullEngine::landed(Answer& answer, const kernels::PassStats& stats,
                                         const Progress& own, const DistanceBound::Floor& floor) {
  DPWA_INVARIANT(round_.current(), "parameters land from a peer that is asked", phase_);
  const PeerId peer = *round_.current();
  const Exchange& exchange = spec_.exchange;
  stats_ = stats;
  compared_ = own;
  verdict_ = {};
  arrival_.incomparable |= !std::isfinite(stats.squared_distance);
  const std::uint64_t version = answer.progress.version;
  if (exchange.blends() && seen(peer).repeats(answer.incarnation, version, block())) {
    fail(answer, PeerFailure::protocol,
         "sent version " + std::to_string(version) + " again, or after a later one");
    return std::nullopt;
  }
  if (!stats.finite) {
    fail(answer, PeerFailure::unusable, "sent parameters that are not finite");
    return std::nullopt;
  }
  distance_ = std::sqrt(stats.squared_distance);
  if (exchange.distance == Exchange::Distance::none && std::isinf(distance_)) {
    fail(answer, PeerFailure::unusable, words_for(distance_, 0));
    return std::nullopt;
  }
  // Weights of another lineage are not blended, so their distance means nothing.
  const bool compares = answer.progress.lineage == own.lineage;
  if (!compares || exchange.distance == Exchange::Distance::none) return std::nullopt;
  judge_distance(answer, floor);
  const bool overflows = exchange.blends() && !answer.failure && !verdict_.refused;
  return overflows ? std::optional(verdict_.scale) : std::nullopt;
}

void PullEngine::judge_distance(Answer& answer, const DistanceBound::Floor& floor) {
  const PeerId peer = *round_.current();
  if (answer.incarnation != seen(peer).incarnation()) firewall_.restarted(peer);
  firewall_.at_version(compared_.version);
  verdict_ = firewall_.judge(peer, block(), distance_, floor);
  if (verdict_.unproven && spec_.exchange.blends()) {
    fail(answer, PeerFailure::unproven,
         "is the first peer heard, so its distance cannot be judged yet");
  } else if (verdict_.refused && (spec_.exchange.blends() || !std::isfinite(distance_))) {
    // One that only compares is told the distance.
    fail(answer, verdict_.offends ? PeerFailure::unusable : PeerFailure::distant,
         words_for(distance_, verdict_.bound));
  }
}

PullEngine::Settled PullEngine::settle(Answer answer, bool late, bool may_overflow, TimePoint now) {
  DPWA_INVARIANT(round_.current(), "an attempt that is settled is of a peer that is asked", phase_);
  const PeerId peer = *round_.current();
  const std::string name = table_.name(peer);
  const Progress& known = table_.at(peer).progress;
  if (answer.failure == PeerFailure::unchanged && !known.final && spec_.exchange.fresh_only &&
      is_stale(staleness_, known.clock, own_clock_)) {
    fail(answer, PeerFailure::stale, words_for_stale(known.clock));
  }
  if (!answer.failure && may_overflow) {
    verdict_.gross = true;
    fail(answer, PeerFailure::unusable,
         "sent parameters so far away that a blend might overflow float16");
  } else if (!answer.failure && verdict_.offends && spec_.exchange.blends()) {
    warn(peer, "distance",
         "'" + name + "' " + words_for(distance_, verdict_.bound) + ": blended nevertheless");
  }
  Settled settled;
  settled.broke_protocol = answer.failure == PeerFailure::protocol;
  if (answer.failure && !kept_out(*answer.failure) && late)
    fail(answer, PeerFailure::timed_out, "no complete answer within the deadline");

  arrival_.peer = peer;
  arrival_.peer_name = name;
  arrival_.progress = answer.progress;
  arrival_.bytes += answer.bytes;
  if (answer.incarnation != 0) table_.introduced(peer, answer.incarnation);
  memories_[peer].refuses_name = answer.refuses_name;
  settled.failure = answer.failure;
  settled.silent = answer.failure == PeerFailure::unreachable ||
                   (answer.failure == PeerFailure::timed_out && answer.bytes == 0);
  if (answer.failure) {
    failed(answer, now);
  } else {
    succeeded(answer, now);
  }
  verdict_ = {};
  return settled;
}

void PullEngine::succeeded(const Answer& answer, TimePoint now) {
  const PeerId peer = *round_.current();
  const Exchange& exchange = spec_.exchange;
  if (exchange.replaces()) firewall_.replaced();
  if (exchange.replaces() && ledger_) ledger_->settle_all();
  arrival_.stats = stats_;
  arrival_.factor_scale = verdict_.scale;
  arrival_.own = compared_;
  arrival_.block = block();
  arrival_.same_host = answer.same_host;
  SeenBlocks& taken = memories_[peer].seen;
  if (exchange.marks_taken && spec_.block) {
    taken.took(answer.incarnation, answer.progress.version, *spec_.block);
  } else if (exchange.marks_taken) {
    taken.took_all(answer.incarnation, answer.progress.version);
  }
  if (exchange.blends()) table_.shares_lineage(peer);
  account_for(answer);
  round_.succeeded(table_, answer.progress, now, answer.same_host);
}

// What is stale counts in full. Otherwise the peer would wait for this node to blend it, which it
// will not do before the peer has caught up.
void PullEngine::account_for(const Answer& answer) {
  if (!balances() || !answer.keeps_ledger || answer.incarnation == 0) return;
  if (answer.failure && kept_out(*answer.failure))
    return ledger_->refused(*round_.current(), answer.incarnation);
  const double share = spec_.block ? block_shares_.at(block()) : 1;
  ledger_->took(*round_.current(), answer.incarnation, share, verdict_.scale);
}

void PullEngine::failed(const Answer& answer, TimePoint now) {
  const PeerId peer = *round_.current();
  const PeerFailure failure = *answer.failure;
  if (failure == PeerFailure::stale || kept_out(failure)) account_for(answer);
  arrival_.refused += kept_out(failure) ? 1 : 0;
  not_fresh_ = not_fresh_ || failure == PeerFailure::not_fresh;
  if (failure == PeerFailure::other_lineage)
    arrival_.other_lineages.push_back({peer, arrival_.peer_name, answer.progress});
  if (failure == PeerFailure::unusable && !verdict_.gross) firewall_.not_finite();
  report(peer, failure, answer.detail);
  round_.failed(table_, failure, now, random_);
}

void PullEngine::stop() {
  stopped_ = true;
}

bool PullEngine::take_up(PeerId place, const Member& member) {
  const std::string& name = member.claim.name;
  const bool is_new = place >= table_.size() || table_.name(place) != name;
  if (is_new) {
    firewall_.put(place);
    if (ledger_) ledger_->forget(place);
    memories_.erase(place);
    unannounced_.insert(place);
    table_.put(place, name);
  }
  const bool out = is_out(member);
  const bool suspect = !out && member.status() == MemberStatus::suspect;
  const bool was_suspect = suspect ? !suspects_.insert(place).second : suspects_.erase(place) > 0;
  const bool changed = is_new || out != table_.at(place).out || suspect != was_suspect;
  table_.set_out(place, out);
  const bool announced = !unannounced_.contains(place);
  if (!changed || name.empty() || (out && !announced)) return is_new;
  const std::string news = announced ? words_for(member.status()) : "' joined";
  log_.push_back({LogEntry::Weight::info, LogEntry::Subject::members, name + news,
                  "'" + name + news, announced ? event_of(member.status()) : EventKind::joined});
  unannounced_.erase(place);
  return is_new;
}

void PullEngine::called(const std::string& name, std::uint64_t incarnation) {
  if (const auto peer = table_.find(name)) table_.returned(*peer, incarnation);
}

void PullEngine::stated(const std::string& name, std::uint64_t incarnation, std::uint16_t taken) {
  if (!ledger_) return;
  if (const auto peer = table_.find(name)) ledger_->heard(*peer, incarnation, taken);
}

void PullEngine::reached(const std::string& name, std::uint64_t incarnation, TimePoint now) {
  if (const auto peer = table_.find(name)) table_.reached(*peer, incarnation, now);
}

bool PullEngine::evicted_by(const std::vector<PeerId>& listed) const {
  const auto refusing = std::ranges::count_if(listed, [this](PeerId peer) {
    const auto found = memories_.find(peer);
    return found != memories_.end() && found->second.refuses_name;
  });
  return 2 * static_cast<std::size_t>(refusing) > listed.size();
}

std::vector<PeerId> PullEngine::to_greet(const std::vector<Member>& members) {
  std::vector<PeerId> peers;
  Sample<PeerId> strangers(max_greeted_strangers, random_);
  for (PeerId peer = 0; peer < members.size(); ++peer) {
    if (members[peer].vouched_for()) {
      peers.push_back(peer);
    } else if (!members[peer].claim.name.empty()) {
      strangers.offer(peer);
    }
  }
  peers.insert(peers.end(), strangers.values().begin(), strangers.values().end());
  return peers;
}

void PullEngine::warn(PeerId peer, const std::string& kind, const std::string& text) {
  log_.push_back(
      {LogEntry::Weight::warn, LogEntry::Subject::pulls, table_.name(peer) + kind, text});
}

void PullEngine::refused(PeerId peer, const std::string& detail) {
  // One that came after the last take_up() has no name here yet.
  if (peer < table_.size()) report(peer, PeerFailure::rejected, detail);
}

void PullEngine::report(PeerId peer, PeerFailure failure, const std::string& detail) {
  const std::string& name = table_.name(peer);
  // The trainer tells of other lineages.
  const bool ordinary = declined_in_order(failure) || failure == PeerFailure::distant ||
                        failure == PeerFailure::unproven || failure == PeerFailure::other_lineage;
  // The key is not made of the detail: that may be in the peer's words, or differ every time.
  log_.push_back({ordinary ? LogEntry::Weight::debug : LogEntry::Weight::warn,
                  LogEntry::Subject::pulls, name + std::to_string(static_cast<int>(failure)),
                  "pull from '" + name + "' failed: " + detail,
                  failure == PeerFailure::unusable ? EventKind::quarantined : EventKind::warning});
}

std::vector<LogEntry> PullEngine::take_log() {
  return std::exchange(log_, {});
}

}  // namespace dpwa

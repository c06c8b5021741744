#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/flow_control.h"
#include "dpwa/rules/per_peer.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

// Why an attempt to pull from a peer brought nothing.
enum class PeerFailure : std::uint8_t {
  timed_out,      // silent, stalled or trickling until the deadline
  unreachable,    // connection refused or broken
  protocol,       // corrupt frame, bad length, wrong magic
  rejected,       // it refused us, or we it: other cluster, other model, no key
  busy,           // answered BUSY: no fault, no score lost
  not_ready,      // answered NOT_READY: no fault, no score lost
  stale,          // lags too far (staleness.h): no score lost
  unusable,       // sent what is not finite, or grossly far away again and again (firewall.h)
  distant,        // sent parameters that are too far away (firewall.h): no score lost
  other_lineage,  // sent parameters that descend from other initial weights: no score lost
  unproven,       // sent parameters before the usual distance is known: not counted as failed
  unchanged,      // has published nothing since we last took its parameters: not counted as failed
  not_fresh,      // its snapshot is older than a step of it usually takes: not counted as failed
};

// The peer answered that it has nothing for us now: no fault of its own, and its stream is whole.
constexpr bool declined_in_order(PeerFailure failure) {
  return failure == PeerFailure::busy || failure == PeerFailure::not_ready ||
         failure == PeerFailure::unchanged || failure == PeerFailure::not_fresh;
}

// The peer answered as a sound one may.
constexpr bool takes_no_score(PeerFailure failure) {
  return declined_in_order(failure) || failure == PeerFailure::stale ||
         failure == PeerFailure::distant || failure == PeerFailure::other_lineage ||
         failure == PeerFailure::unproven;
}

struct PeerRecord {
  double score = 0;       // as of the last answer or failure; see PeerTable::score
  TimePoint failed_at{};  // the last failure that took score
  unsigned failures = 0;  // in a row
  bool forgiven = false;  // its return has already been rewarded in this row of failures
  bool offended = false;  // by what must not be blended; nothing sound has come since
  unsigned reached = 0;   // times that being reached has been rewarded in this row
  TimePoint reached_at = TimePoint::min();  // not again before
  TimePoint retry_at = TimePoint::min();
  std::uint64_t incarnation = 0;  // 0 = never heard of
  std::uint64_t pulls_ok = 0;
  std::uint64_t pulls_failed = 0;
  std::optional<PeerFailure> last_failure;
  Progress progress;                      // of its last snapshot
  std::optional<Duration> answer_time;    // of its last snapshot over the network
  std::optional<Duration> snapshot_time;  // of its last snapshot
  std::uint8_t late_answers = 0;          // of the last eight answers, the last one the lowest bit
  TimePoint rests_until = TimePoint::min();  // after a late answer
  unsigned other_lineages = 0;               // times in a row
  bool out = false;                          // dead or gone: not chosen
};

// Everything a node knows of its peers, and the choice among them: argmax(score +
// uniform{10..1000}) as in the original dpwa, over the peers that are not waiting for a retry. No
// peer is removed for ever: a failed peer backs off, regains score with time, and is used as before
// as soon as it answers or calls this node (`returned`).
//
// A record is kept of the peers that this node has dealt with: all others share the initial one. A
// choice does not look at every peer either: most have the initial score and no pause, so the
// highest of their draws is drawn at once (sample.h), and only peers that failed lately, back off
// or rest are looked at one by one. Time does not go backwards. Pure: time and randomness are
// arguments. One owner, one thread.
class PeerTable {
 public:
  PeerTable(std::vector<std::string> names, FlowControl flow_control, Backoff backoff);

  // The peer to ask next, or none when every peer is excluded or backing off. Ties break at random.
  // While no peer is known to answer, back-offs are short: sparing the peers gains nothing, and the
  // cause that cut this node off may end at any time.
  std::optional<PeerId> choose(std::span<const PeerId> excluded, TimePoint now,
                               Random& random) const;

  // Its score with what time has forgiven: what choose() goes by.
  double score(PeerId peer, TimePoint now) const;

  // A peer that answers after a row of failures was down and is back: its score starts afresh.
  void succeeded(PeerId peer, const Progress& progress);
  // How long the answer took, after succeeded() or a failure that takes no score. A late one
  // (flow_control.h) takes score as a failure does; where other peers are quicker this one rests,
  // unless none of them answers any more. No call ends that, and no restart.
  void answered(PeerId peer, const AnswerTime& answer, TimePoint now);
  // Takes score (not for busy, not_ready, stale, distant, other_lineage) and sets the time of the
  // next try; a peer that is unchanged, not fresh or unproven loses nothing and may be asked again
  // at once. A rejection backs off by the longest delay at once: the answer will not change by
  // itself. Another lineage backs off ever longer, until shares_lineage(). What is unusable, or
  // breaks the protocol, is an offence: only something sound restores the score, not a call, an
  // answer that brings nothing, or a restart, because a liar would do that. None of these ends the
  // back-off after what is unusable either; bytes may have been damaged on the way.
  void failed(PeerId peer, PeerFailure failure, TimePoint now, Random& random);
  // Its parameters descend from the same initial weights as the own ones.
  void shares_lineage(PeerId peer);
  // The peer was heard from by itself. A higher incarnation is a restart: its score starts afresh,
  // and its back-off ends, unless it has offended. With the same incarnation (or 0: not known) the
  // back-off ends unless the peer rejected us or said that it is busy or not ready: calling does
  // not change its answer. Its score starts afresh if it seemed down, once until it answers again:
  // a peer that can call but not be reached, or is always too slow, must not win favour by calling.
  // An older one is ignored.
  void returned(PeerId peer, std::uint64_t incarnation);
  // The incarnation that the peer stated when this node called it. It is believed even if it is
  // lower: a caller may have used its name, or its wall clock was set back before a restart.
  void introduced(PeerId peer, std::uint64_t incarnation);
  // The peer answered this node outside of the pulls, so the cause of failed pulls may be over. Its
  // score starts afresh, at most every 4 s, and more rarely the longer its pulls bring nothing.
  void reached(PeerId peer, std::uint64_t incarnation, TimePoint now);

  // No peer has answered its last pull, and there are some: they fail, are dead or have left.
  bool nobody_answers() const;
  // The kinds of failure that the peers had last, each once. A peer that is gone and never gave
  // anything counts as unreachable: it was never there. One that gave something and has not failed
  // since left properly, and does not count.
  std::vector<PeerFailure> last_failures() const;

  // The place of a new peer: the one after the last, or the place of a forgotten peer.
  void put(PeerId peer, const std::string& name);
  // Dead or gone: not chosen.
  void set_out(PeerId peer, bool out);

  // Of all pulls, also those at peers that were forgotten since.
  std::uint64_t pulls_ok() const { return pulls_ok_; }
  std::uint64_t pulls_failed() const { return pulls_failed_; }

  std::size_t size() const { return names_.size(); }
  const std::string& name(PeerId peer) const { return names_.at(peer); }
  std::optional<PeerId> find(const std::string& name) const;
  // Lasts until the table changes.
  const PeerRecord& at(PeerId peer) const;
  // Peers with a record of their own, in no particular order: this node has had to do with them.
  std::size_t known() const { return records_.size(); }

 private:
  friend struct InvariantTest<PeerTable>;
  using Time = std::optional<Duration> PeerRecord::*;

  PeerRecord& record(PeerId peer);
  double score_of(const PeerRecord& record, TimePoint now) const;
  std::vector<Duration> times_of_others(PeerId peer, Time time) const;
  void forgive(PeerRecord& record) const;
  void end_failures(PeerRecord& record) const;

  // --- the choice (peer_choice.cpp)
  bool is_ordinary(const PeerRecord& record, TimePoint now) const;
  std::size_t ordinary() const;
  std::vector<PeerId> ordinary_among(std::span<const PeerId> peers) const;
  void watch(PeerId peer);
  void unwatch(PeerId peer);
  void settle(TimePoint now);
  const PerPeer<PeerRecord>::Entry& watched(std::uint32_t position) const;
  bool cut_off(TimePoint now) const;
  bool waits(const PeerRecord& record, bool cut_off, TimePoint now) const;
  bool tried_soon(const PeerRecord& record, TimePoint now) const;
  Duration cut_off_delay(PeerFailure failure) const;

  std::vector<std::string> names_;                  // empty: no peer has that place
  std::unordered_map<std::string, PeerId> places_;  // by name
  FlowControl flow_control_;
  Backoff backoff_;
  PeerRecord fresh_;  // of the peers that have none of their own
  PeerRecord gone_;   // the same of those that are out
  PerPeer<PeerRecord> records_;
  // The peers that are out or watched. All others are ordinary, and stay so unless something
  // happens to them: they answer as far as is known, have the initial score, and wait for nothing.
  PeerSet special_;
  std::vector<std::uint32_t> watched_;  // positions in records_.entries(); none of these is out
  std::uint64_t pulls_ok_ = 0;
  std::uint64_t pulls_failed_ = 0;
};

}  // namespace dpwa

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/answer_time.h"
#include "dpwa/rules/backoff.h"
#include "dpwa/rules/flow_control.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

using PeerId = std::uint32_t;  // index into the peer table

// Why an attempt to pull from a peer gave nothing.
enum class PeerFailure {
  timed_out,      // silent, stalled or trickling until the deadline
  unreachable,    // connection refused or broken
  protocol,       // corrupt frame, bad length, wrong magic
  rejected,       // it refused us, or we it: other cluster, other model, no key
  busy,           // answered BUSY: no fault, no score lost
  not_ready,      // answered NOT_READY: no fault, no score lost
  stale,          // lags too far or stands still (staleness.h): no score lost
  unusable,       // sent parameters that are not finite
  distant,        // sent parameters that are much too far away (firewall.h): no score lost
  other_lineage,  // sent parameters that descend from other initial weights: no score lost
  unproven,       // sent parameters before another peer's tell what is usual: not counted as failed
  unchanged,      // has published nothing since we last took its parameters: not counted as failed
};

// The peer answered that it has nothing for us now: no fault of its own, and its stream is whole.
constexpr bool declined_in_order(PeerFailure failure) {
  return failure == PeerFailure::busy || failure == PeerFailure::not_ready ||
         failure == PeerFailure::unchanged;
}

// The peer answered as a sound one may.
constexpr bool takes_no_score(PeerFailure failure) {
  return declined_in_order(failure) || failure == PeerFailure::stale ||
         failure == PeerFailure::distant || failure == PeerFailure::other_lineage ||
         failure == PeerFailure::unproven;
}

struct PeerRecord {
  std::string name;
  double score = 0;       // as of the last answer or failure; see PeerTable::score
  TimePoint failed_at{};  // the last failure that took score
  unsigned failures = 0;  // in a row
  bool forgiven = false;  // its return has already been rewarded in this row of failures
  unsigned reached = 0;   // times that being reached has been rewarded in this row
  TimePoint reached_at = TimePoint::min();  // not again before
  TimePoint retry_at = TimePoint::min();
  TimePoint held_until = TimePoint::min();  // in quarantine
  std::uint64_t incarnation = 0;            // 0 = never heard of
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
// uniform{10..1000}) as in the original dpwa, over the peers that are not waiting for a retry.
// Nobody is removed for ever: a failed peer backs off, regains score with time, and is used again
// as before as soon as it answers or calls us (`returned`). Pure: time and randomness are
// arguments. One owner, one thread.
class PeerTable {
 public:
  PeerTable(const std::vector<std::string>& names, FlowControl flow_control, Backoff backoff);

  // The peer to ask next, or none when every peer is excluded or backing off. Ties break at random.
  // While no peer is known to answer, back-offs are short: nothing is gained by sparing the others,
  // and what cut this node off may be over at any time.
  std::optional<PeerId> choose(std::span<const PeerId> excluded, TimePoint now,
                               Random& random) const;

  // The same among these alone: the neighbours of this node in a topology.
  std::optional<PeerId> choose_among(std::span<const PeerId> neighbours,
                                     std::span<const PeerId> excluded, TimePoint now,
                                     Random& random) const;

  // Its score with what time has forgiven: what choose() goes by.
  double score(PeerId peer, TimePoint now) const;

  // A peer that answers after a row of failures was down and is back: its score starts afresh.
  void succeeded(PeerId peer, const Progress& progress);
  // How long the answer took, after succeeded() or a failure that takes no score. A late one
  // (answer_time.h) takes score as a failure does; where other peers are quicker this one rests,
  // unless none of them answers any more. No call ends that, and no restart.
  void answered(PeerId peer, const AnswerTime& answer, TimePoint now);
  // Takes score (not for busy, not_ready, stale, distant, other_lineage) and sets the time of the
  // next try; a peer that is unchanged or unproven loses nothing and may be asked again at once. A
  // rejection backs off by the longest delay at once: the answer will not change by itself. Another
  // lineage backs off ever longer, until shares_lineage().
  void failed(PeerId peer, PeerFailure failure, TimePoint now, Random& random);
  // Its parameters descend from the same initial weights as the own ones.
  void shares_lineage(PeerId peer) { peers_.at(peer).other_lineages = 0; }
  // Quarantine: the peer is not chosen until then, whatever it does meanwhile.
  void hold(PeerId peer, TimePoint until) { peers_.at(peer).held_until = until; }
  // The peer was heard from by itself. A higher incarnation is a restart: its score starts afresh,
  // and its back-off ends. With the same incarnation (or 0: not known) the back-off ends unless the
  // peer rejected us or said that it is busy or not ready: calling does not change its answer. Its
  // score starts afresh if it seemed down, once until it answers again: a peer that can call but
  // not be reached, or is always too slow, must not win favour by calling. An older one is ignored.
  void returned(PeerId peer, std::uint64_t incarnation);
  // What the peer said of itself when we called it. Believed even if it is lower: a caller may have
  // used its name, or its wall clock was set back before it was restarted.
  void introduced(PeerId peer, std::uint64_t incarnation);
  // We reached it beside the pulls, and it answered: what made them fail may be over. Its score
  // starts afresh, at most every 4 s, and more rarely the longer it gives nothing all the same.
  void reached(PeerId peer, std::uint64_t incarnation, TimePoint now);

  // No peer has answered its last pull, and there are some: they fail, are dead or have left.
  bool nobody_answers() const;

  // The place of a peer that is new: one after the last, or that of a peer that is forgotten.
  void put(PeerId peer, const std::string& name);
  void set_out(PeerId peer, bool out) { peers_.at(peer).out = out; }

  std::size_t size() const { return peers_.size(); }
  const PeerRecord& at(PeerId peer) const { return peers_.at(peer); }
  std::optional<PeerId> find(const std::string& name) const;

 private:
  bool cut_off(TimePoint now) const;
  bool tried_soon(const PeerRecord& record, TimePoint now) const;
  Duration cut_off_delay(PeerFailure failure) const;
  std::vector<Duration> times_of_others(PeerId peer,
                                        std::optional<Duration> PeerRecord::*time) const;
  void forgive(PeerRecord& record) const;
  void end_failures(PeerRecord& record) const;

  std::vector<PeerRecord> peers_;
  std::unordered_map<std::string, PeerId> places_;
  FlowControl flow_control_;
  Backoff backoff_;
};

}  // namespace dpwa

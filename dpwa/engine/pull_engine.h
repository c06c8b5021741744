#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "dpwa/base/event_kind.h"
#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/rules/firewall.h"
#include "dpwa/rules/membership.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/pair_ledger.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/pull_round.h"

namespace dpwa {

// Options of one run of a node: no cluster file states them.
struct PullRunOptions {
  std::uint64_t seed = 0;  // of the choice of peers
  // The factor of every blend, if the accounts of pairs are kept even (PairLedger).
  std::optional<double> ledger_factor;
  // The share of each block in the exchanged bytes of the model.
  std::vector<double> block_shares{1.0};
};

struct PullEngineOptions : PullRunOptions {
  Backoff backoff;
  StalenessOptions staleness;
  FirewallOptions firewall;
};

// The result of one attempt at one peer.
struct Answer {
  std::optional<PeerFailure> failure;  // none: the snapshot landed
  std::string detail;                  // one line on the failure, for the log
  Progress progress;                   // the peer's, once its reply was read
  std::uint64_t bytes = 0;             // of parameters received, as they travelled
  std::uint64_t incarnation = 0;       // of the peer on this connection; 0 = it did not greet us
  bool same_host = false;              // it landed from the peer's memory, not over the network
  bool refuses_name = false;           // it says that our name is another's
  bool keeps_ledger = false;           // it states what it takes of us, and heard what we stated
};

// A line for the log. The caller that writes lines limits those of one key.
struct LogEntry {
  enum class Weight { debug, info, warn };
  enum class Subject { pulls, members };
  Weight weight = Weight::debug;
  Subject subject = Subject::pulls;
  std::string key;
  std::string text;
  EventKind event = EventKind::warning;  // of a line that is more than debug
};

// The decisions of one node's pulls, without I/O: which peer to ask for what, how to judge an
// answer, and what to remember of the peers. The thread that has the sockets, and the simulator,
// drive it:
//
//   engine.begin(spec);
//   while (true) {
//     action = engine.next(own clock, now);
//     Wait:    let that time pass
//     Ask:     send the request; when the head of the answer is there,
//              engine.head(...) says whether the parameters are wanted;
//              when the answer has come to an end:
//              engine.landed(...) if parameters landed, then engine.settle(...)
//     Arrival: the end of the round
//   }
//
// Pure: time is an argument, randomness a seed. What it keeps of a peer beyond the peer table and
// the firewall it keeps of those that it has asked. One owner, one thread.
class PullEngine {
 public:
  PullEngine(const PullEngineOptions& options, const std::vector<std::string>& peers);

  // --- a round
  struct Wait {
    Duration time;
  };
  struct Ask {
    PeerId peer = 0;
    Duration left{};  // until the deadline of the round
    // The version that was taken from it last, which it need not send again; 0 = none.
    std::uint64_t known_incarnation = 0;
    std::uint64_t known_version = 0;
    // The account of this peer, to be stated to a peer that keeps a ledger too. A pull with it
    // gets a fresh snapshot or NOT_FRESH; none: a snapshot of any age is wanted.
    std::optional<std::uint16_t> taken{};
  };
  using Action = std::variant<Wait, Ask, Arrival>;

  void begin(const RoundSpec& spec);
  Action next(double own_clock, TimePoint now);
  // The head of the answer, before any parameters: why they are not wanted, if so.
  std::optional<PeerFailure> head(const Progress& peer, std::uint64_t own_lineage);
  // The parameters of `answer` have landed; `own` is the progress of the snapshot that they were
  // compared with, `floor` the distance that rounding can make to it. A result is the scale of the
  // factor for which the caller has to find out whether a blend may overflow.
  std::optional<double> landed(Answer& answer, const kernels::PassStats& stats, const Progress& own,
                               const DistanceBound::Floor& floor = {});
  struct Settled {
    std::optional<PeerFailure> failure;
    bool broke_protocol = false;  // the connection is not to be used again
    bool silent = false;          // for the membership: it gave no sign of life
  };
  // The attempt is over. `late`: its deadline has passed.
  Settled settle(Answer answer, bool late, bool may_overflow, TimePoint now);
  void stop();  // no peer is asked any more, in this round or a later one

  // --- other news of peers
  // The entry of `place` in the member table, when it has changed. Returns true when the place now
  // belongs to another node.
  bool take_up(PeerId place, const Member& member);
  void called(const std::string& name, std::uint64_t incarnation);
  // It stated in a pull what it has taken of this node (PairLedger::stated_to()).
  void stated(const std::string& name, std::uint64_t incarnation, std::uint16_t taken);
  void reached(const std::string& name, std::uint64_t incarnation, TimePoint now);
  // It refused this node outside of a round.
  void refused(PeerId peer, const std::string& detail);
  // Whether most of `listed`, the running nodes of the cluster file, state that this node's name
  // belongs to another process. Joined nodes do not count: a node that may join can do so under
  // many names.
  bool evicted_by(const std::vector<PeerId>& listed) const;
  // The peers to greet, in this order: all that are vouched for, then a few of the others.
  std::vector<PeerId> to_greet(const std::vector<Member>& members);

  std::vector<LogEntry> take_log();
  const PeerTable& table() const { return table_; }
  const Firewall& firewall() const { return firewall_; }
  const PairLedger* ledger() const { return ledger_ ? &*ledger_ : nullptr; }  // null: none is kept

 private:
  struct Memory {
    SeenBlocks seen;
    bool refuses_name = false;  // its last answer said so
  };

  Arrival end(TimePoint now);
  unsigned block() const { return spec_.block.value_or(0); }
  const SeenBlocks& seen(PeerId peer) const;
  bool balances() const { return ledger_ && spec_.exchange.blends() && !spec_.peer; }
  std::optional<PeerId> choose(TimePoint now);
  void judge_distance(Answer& answer, const DistanceBound::Floor& floor);
  void succeeded(const Answer& answer, TimePoint now);
  // What has been taken of the peer, as its account counts it.
  void account_for(const Answer& answer);
  void failed(const Answer& answer, TimePoint now);
  void warn(PeerId peer, const std::string& kind, const std::string& text);
  void report(PeerId peer, PeerFailure failure, const std::string& detail);

  PeerTable table_;
  Firewall firewall_;
  const StalenessOptions staleness_;
  std::optional<PairLedger> ledger_;
  unsigned declined_rounds_ = 0;  // that brought nothing, since peers were not fresh
  std::vector<double> block_shares_;
  Random random_;
  std::unordered_map<PeerId, Memory> memories_;  // of the peers that were asked
  std::unordered_set<PeerId> unannounced_;       // new ones, until the log has told of them
  std::unordered_set<PeerId> suspects_;          // of which the log has told so
  std::vector<LogEntry> log_;
  bool stopped_ = false;

  // --- of the round under way
  enum class Phase { begun, waited, asking };
  RoundSpec spec_;
  Phase phase_ = Phase::begun;
  PullRound round_;
  TimePoint began_{};
  bool not_fresh_ = false;  // a peer was
  double own_clock_ = 0;    // when the current peer was asked
  Arrival arrival_;

  // --- of the attempt under way
  DistanceVerdict verdict_;
  double distance_ = 0;
  kernels::PassStats stats_;
  Progress compared_;
};

}  // namespace dpwa

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/engine/peer_answer.h"
#include "dpwa/engine/start_comparison.h"
#include "dpwa/engine/trainer_line.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/start_rule.h"

namespace dpwa {

struct StartUpOptions : NodePlace {
  std::string join_by;  // the addresses given to join by, or the seeds, for messages; empty: none
  StartRuleOptions rule;
  Duration timeout{};   // of a greeting, and of a pull at least
  unsigned blocks = 1;  // that the model is pulled in
  FirewallOptions firewall;
  std::uint64_t new_lineage = 1;  // of weights that this node brings
  StartWeights weights{};         // at first; with `resumed` they are weights to begin with
};

// The start of a node: greets every peer until start_rule.h decides, takes over the common weights
// in full or brings them, waits until the others have them too, then begins. The driver asks next()
// for an action, performs it, and reports the result by the event named beside the action. Pure:
// time and randomness are arguments; it neither sleeps nor logs. One owner, one thread.
class StartUp {
 public:
  // The addresses to join by, or those of the seeds where no known node is, for all of their member
  // tables; then visited().
  struct Visit {};
  struct Greet {};  // every peer; then greeted()
  // These are the weights of this node from here on: publish them as they are; then published().
  struct Publish {
    double clock = 0;
    std::uint64_t lineage = 0;  // 0: no node uses them as weights to begin with
  };
  struct Pull {  // everything of this peer, to take over its weights; then pulled()
    PeerId peer = 0;
    Duration timeout{};
  };
  struct Measure {  // the distance to this block of this peer; then measured()
    PeerId peer = 0;
    unsigned block = 0;
  };
  struct Wait {  // until a process calls that has not called before, and no longer than this
    Duration time{};
  };
  struct Begin {};  // the first step
  struct Fail {     // this node cannot begin
    std::string line;
  };
  using Action = std::variant<Visit, Greet, Publish, Pull, Measure, Wait, Begin, Fail>;

  // `begun`: when the start was asked for; every bound counts from there.
  StartUp(StartUpOptions options, TimePoint begun);

  Action next(TimePoint now, Random& random);

  void visited(const std::vector<PeerAnswer>& answers, TimePoint now);
  void greeted(const std::vector<PeerAnswer>& answers, TimePoint now);
  void published(bool done);
  // `taken`: they are in place of the own ones, at this clock and of this lineage.
  void pulled(TakeOver outcome, double clock, std::uint64_t lineage, TimePoint now);
  // None: the peer gave no weights of the own lineage.
  void measured(std::optional<double> squared_distance);

  std::vector<TrainerLine> take_lines();

 private:
  enum class Phase { opening, visiting, looking, deciding, taking, pausing, ending, over };
  // The nodes in the order of bringing weights (the first running one does): the nodes of the file,
  // this one among them, then those that joined. A node that itself joins comes last.
  struct Seen {
    StartView view;
    std::optional<PeerId> peer;  // none: this node
    std::string name{};
  };
  // The state that is kept of a peer between two looks.
  struct Memory {
    unsigned failed_pulls = 0;
    unsigned taken_over = 0;
    bool together = false;
    std::optional<TimePoint> busy;  // since when it is busy, or since that counted as failed
  };

  Action next_action(TimePoint now, Random& random);
  Duration longest(const Action& action) const;
  bool stood_still(TimePoint now);
  static bool says_the_same(const Seen& before, const Seen& now);
  Seen seen_of(PeerId peer, const PeerAnswer& answer, bool prompt);
  // Each sets the failure when this node has to give up.
  void look_for_namesake(const std::vector<PeerAnswer>& answers, TimePoint now);
  void give_up_if_refused(TimePoint now);
  bool is_refused_alone(TimePoint now);
  std::optional<Action> decide(TimePoint now, Random& random);
  StartDecision decision(TimePoint now) const;
  void compare(const Seen& best, Random& random);
  std::optional<Action> take(TimePoint now);
  void count(PeerId peer, TakeOver outcome, TimePoint now);
  std::vector<PeerId> others_to_compare(const Seen& best, Random& random) const;
  Publish show() const;  // the weights
  Wait pause(TimePoint now, Random& random);
  Duration elapsed(TimePoint now) const { return now - begun_; }
  // Its log lines, in start_up_report.cpp.
  template <typename Which>
  static std::string names_of(const std::vector<Seen>& seen, Which which);
  bool by_seeds() const { return options_.listing == Listing::by_seeds; }
  bool is_alone() const { return by_seeds() && seen_.size() <= 1; }
  void warn_of_many();
  void announce_waiting(TimePoint now);
  void report_absent(TimePoint now);
  std::string shortfall(TimePoint now) const;

  const StartUpOptions options_;
  TimePoint begun_;               // but for the time during which this process was stopped
  std::optional<TimePoint> due_;  // the end of the action that was asked for, at the latest
  Phase phase_ = Phase::opening;
  Phase after_pause_ = Phase::looking;
  std::optional<std::string> failure_;
  TimePoint greeted_at_{};

  double clock_;
  std::uint64_t lineage_ = 0;
  std::optional<StartWeights> own_;  // what this node would begin with
  bool shown_ = false;               // and others can see and have it
  bool tried_to_show_ = false;       // since the last decision
  std::vector<Seen> seen_;
  unsigned looks_without_news_ = 0;  // in a row
  unsigned looks_in_vain_ = 0;       // likewise
  // The last look took longer than one may, as where this process was stopped for a moment: others
  // may train meanwhile, and it looks again before it brings weights or begins.
  bool looked_late_ = false;
  unsigned late_looks_ = 0;  // after which it looked again
  std::unordered_map<PeerId, Memory> memory_;
  std::optional<StartComparison> comparison_;
  PeerId best_ = 0;  // the peer that weights are taken over from
  bool best_trains_ = false;
  bool found_ = false;            // a node, by a visit
  std::string refused_by_seeds_;  // the last reason; empty: by none, or another was found
  std::string refusal_;           // the last reason that a peer gave for refusing this node
  std::optional<TimePoint> announced_;
  std::optional<TimePoint> name_refused_;  // since when peers say that the name is taken
  std::vector<TrainerLine> lines_;
};

}  // namespace dpwa

#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/gossip/gossip.h"
#include "dpwa/rules/start_rule.h"

namespace dpwa {

// The start of a node: greets every peer until start_rule.h decides, pulls the common weights in
// full or brings them, waits until the others have them too, then declares the node ready. While it
// waits it is `joining` and gives its weights to those that begin with it. `begun`: when start()
// was called; every bound counts from there. Runs on the trainer thread.
class StartUp {
 public:
  StartUp(Gossip& gossip, TimePoint begun);
  void run();  // throws std::runtime_error with one line when this node cannot begin

 private:
  // Nodes in the order in which the first of them that runs brings the weights: those of the file,
  // this one among them, then those that joined. One that joins itself comes last.
  struct Seen {
    StartView view;
    std::optional<PeerId> peer;  // none: this node
    std::string name{};
  };
  // What is remembered of a peer from look to look.
  struct Memory {
    unsigned failed_pulls = 0;
    unsigned taken_over = 0;
    bool together = false;
    std::optional<TimePoint> busy;  // since when it has been, or since that was counted as failed
  };
  enum class Pull { taken, failed, busy };

  void join();  // by the nodes that it was told to
  std::vector<Seen> look_around();
  Seen seen_of(PeerId peer, const Greeted& greeted, const std::vector<Member>& members,
               bool prompt);
  void look_for_namesake(const std::vector<Greeted>& greeted);
  void give_up_if_refused(const std::vector<Seen>& seen) const;
  // Acts until there is something to wait for. Whether the node may begin.
  bool act(const std::vector<Seen>& seen);
  StartDecision decide(const std::vector<Seen>& seen) const;
  bool pull_from(const Seen& best, const std::vector<Seen>& seen);
  void count(PeerId peer, Pull pull);
  Pull pull_and_compare(const Seen& best, const std::vector<Seen>& seen);
  Pull take_over(PeerId peer, bool trains);  // its weights
  // With `clip` and `refuse`: `best` and others to compare its weights with, none of them behind
  // what this node has; empty: too few.
  std::vector<PeerId> witnesses_for(PeerId best, const std::vector<Seen>& seen);
  void bring_weights();
  void show_weights();
  // Of the peers in such a state, quoted.
  template <typename Which>
  static std::string names_of(const std::vector<Seen>& seen, Which which);
  void announce_waiting(const std::vector<Seen>& seen);
  void report_absent(const std::vector<Seen>& seen) const;
  std::string shortfall(const std::vector<Seen>& seen) const;
  Duration elapsed() const;

  Gossip& gossip_;
  const TimePoint begun_;
  StartRuleOptions options_;
  std::optional<StartWeights> own_;  // what this node would begin with
  bool shown_ = false;               // and others can see and have it
  std::unordered_map<PeerId, Memory> memory_;
  std::string refusal_;  // the last reason that a peer gave for refusing this node
  TimePoint announced_{};
  std::optional<TimePoint> name_refused_;  // since when our name is said to be another's
};

}  // namespace dpwa

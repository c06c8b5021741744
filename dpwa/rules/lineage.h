#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/listing.h"
#include "dpwa/rules/membership.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

// The last report of another node of the cluster file that answers.
struct LineageReport {
  std::uint64_t lineage = 0;  // 0 = not heard yet
  double clock = 0;
};

// Whether a node that trains gives up its weights and takes those of `peer` in full, instead of
// blending.
//
// Nodes that could not see each other when they began (a network split, two nodes that both waited
// for a third) descend from different initial weights. The average of two such models is worse than
// either, because hidden units play different roles in them. So different lineages are never
// blended, and one yields: to the lineage that more of the answering nodes of the file report, at
// equal counts to that of the higher clock, then to the smaller one. A peer without a lineage, or
// whose clock is not finite, is never yielded to.
// `others`: all but this node, `peer` included. `own_counts`: this node is of the file. A node that
// has not been heard yet counts towards this node's own lineage, unless `heard_enough`.
bool yields(const Progress& own, const Progress& peer, std::span<const LineageReport> others,
            bool own_counts, bool heard_enough);

// Which of two lineages ranks higher where no file lists the nodes, so that counts mean nothing:
// the one whose clock is ahead by more than a tenth and ten steps has been trained for longer; else
// the smaller one, so that all nodes decide alike while clocks move.
bool is_elder(const LineageReport& one, const LineageReport& other);

// The same as yields() by that rule.
bool yields_by_age(const Progress& own, const Progress& peer,
                   std::span<const LineageReport> others);

// How often a node that trains may take over the weights of one and the same peer: again after a
// minute, then after twice as long each time, up to an hour. And of two nodes that take over from
// each other at the same time, the one of the larger lineage does. Pure. One owner, one thread.
class TakeoverLimit {
 public:
  bool allows(const std::string& peer, TimePoint now) const;
  // Whether taking over may end a mutual takeover: `peer` has had our weights in full at `given`.
  static bool may_cross(const Progress& own, const Progress& peer, TimePoint given, TimePoint now);
  void took(const std::string& peer, TimePoint now);

 private:
  struct Record {
    unsigned count = 0;
    TimePoint again = TimePoint::min();
  };
  std::map<std::string, Record> peers_;
};

// When a node of the file last had our weights in full, and of which lineage they were.
struct GivenWeights {
  TimePoint at{};
  std::uint64_t lineage = 0;
};

// A node's knowledge of the others when it judges their lineage.
struct Surroundings {
  std::vector<Member> members;
  std::map<std::string, GivenWeights, std::less<>> given;  // by name
};

// The last reports of the other nodes on their lineage, and the decision whether to take over the
// weights of one of them while training: yields() and TakeoverLimit with the state that they need.
// Pure: time is an argument. One owner, one thread.
class LineageWatch {
 public:
  // By seeds the elder of two lineages is yielded to, however many nodes have it: one process may
  // count under many names. Nodes of the file are remembered, and of others as many as make `most`
  // in all: where no node is known to be of the file, as for one that joins without a file, there
  // may be that many members.
  LineageWatch(Listing listing, std::size_t most) : listing_(listing), most_(most) {}

  void hear(const std::string& name, const LineageReport& report, bool listed);
  bool full() const { return reports_.size() >= most_; }
  // Whether to take over the weights of `name`, which has this progress. From the first question on
  // a node that has not been heard counts for the own lineage, for `start_wait`.
  bool yields_to(const std::string& name, const Progress& peer, const Progress& own,
                 const Surroundings& others, Duration start_wait, TimePoint now);
  void took_over(const std::string& name, TimePoint now);
  void forget_question() { asked_.reset(); }  // the own lineage is another one now
  void forget_all() { reports_.clear(); }

 private:
  const Listing listing_;
  const std::size_t most_;
  std::map<std::string, LineageReport, std::less<>> reports_;  // by name
  TakeoverLimit takeovers_;
  std::optional<TimePoint> asked_;  // since when another lineage has been heard of
};

}  // namespace dpwa

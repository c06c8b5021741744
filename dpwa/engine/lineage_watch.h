#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/lineage.h"
#include "dpwa/rules/membership.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

// When a node of the file last had our weights in full, and of which lineage they were.
struct GivenWeights {
  TimePoint at{};
  std::uint64_t lineage = 0;
};

// What a node knows of the others when it judges their lineage.
struct Surroundings {
  std::vector<Member> members;
  std::map<std::string, GivenWeights, std::less<>> given;  // by name
};

// What the other nodes said of their lineage last, and whether to take over the weights of one of
// them while training: yields() and TakeoverLimit, with what they go by. Pure: time is an argument.
// One owner, one thread.
class LineageWatch {
 public:
  // `of_file`: this node is of the cluster file. Nodes of the file are remembered, and of others as
  // many as make `most` in all: where no node is known to be of the file, as for one that joins
  // without a file, there may be that many members.
  LineageWatch(bool of_file, std::size_t most) : of_file_(of_file), most_(most) {}

  void hear(const std::string& name, const LineageReport& report, bool seed);
  bool full() const { return reports_.size() >= most_; }
  // Whether to take over the weights of `name`, which has this progress. From the first question on
  // a node that has not been heard counts for the own lineage, for `start_wait`.
  bool yields_to(const std::string& name, const Progress& peer, const Progress& own,
                 const Surroundings& others, Duration start_wait, TimePoint now);
  void took_over(const std::string& name, TimePoint now);
  void forget_question() { asked_.reset(); }  // the own lineage is another one now
  void forget_all() { reports_.clear(); }

 private:
  const bool of_file_;
  const std::size_t most_;
  std::map<std::string, LineageReport, std::less<>> reports_;  // by name
  TakeoverLimit takeovers_;
  std::optional<TimePoint> asked_;  // since when another lineage has been heard of
};

}  // namespace dpwa

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "dpwa/observe/node_status.h"

namespace dpwa::observe {

// Who pulled from whom in the last seconds, from the counters that nodes keep of their peers: the
// edges of the picture of a cluster. One thread.
class RecentPulls {
 public:
  // The documents of nodes at one time, in seconds.
  void add(const NodeStatus& node, double time);

  // [["w1", "w2", ok, failed, age_s, "timed_out"], ...] of pulls whose end was seen at most
  // `longest_age` seconds before `time`: the puller, its peer, the pulls between the last two
  // looks by outcome, and the reason of the last failure or null.
  Json to_json(double time, double longest_age) const;

 private:
  struct Pair {
    std::uint64_t ok = 0;  // totals of the puller's process
    std::uint64_t failed = 0;
    std::uint64_t recent_ok = 0;  // of the last time when there were any
    std::uint64_t recent_failed = 0;
    double time = 0;  // of these
    std::string failure;
  };
  std::map<std::pair<std::string, std::string>, Pair> pairs_;
};

}  // namespace dpwa::observe

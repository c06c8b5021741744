#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// The barriers of a program that all workers run. The n-th barrier is passed when every worker of
// the epoch has reached n barriers. A worker that is left out therefore holds up nobody. A worker
// that starts its program again passes the barriers that the others have passed. Workers repeat
// their count with every beat, so a server that has just come back soon knows what the others know.
// Pure. One owner, one thread.
class Barriers {
 public:
  // `waits`: the worker waits at the last of them.
  void reached(const MemberId& worker, std::uint64_t count, bool waits);
  // The workers whose barrier is passed, with the number of barriers that all workers have reached.
  // Each reached() that waits gives one entry.
  std::vector<std::pair<std::string, std::uint64_t>> take_passed(const Epoch& epoch);

 private:
  struct Reached {
    std::uint64_t incarnation = 0;
    std::uint64_t count = 0;
    bool waits = false;
  };
  std::map<std::string, Reached> reached_;
};

}  // namespace dpwa::kvstore

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// The barriers of a program that all workers run: its n-th barrier is passed when every worker of
// the epoch has come to n of them. So a worker that is left out holds up nobody, and one that
// begins its program anew passes those that the others are past. Workers tell their count again
// with every beat, so a server that has just come back soon knows what the others know. Pure. One
// owner, one thread.
class Barriers {
 public:
  // `waits`: at the last of them.
  void reached(const MemberId& worker, std::uint64_t count, bool waits);
  // The workers whose barrier is passed, and the number of barriers that all have come to: each
  // once for every reached() that waits.
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

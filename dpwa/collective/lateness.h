#pragma once

#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/base/usual_time.h"

namespace dpwa::collective {

// How long a wait for the others may last before it is looked into, from the waits of this run in
// exchanges that ended well: from 250 ms to 2 s; 1 s while little is known.
Duration before_looking(const UsualTime& waits);

// Decides when a rank that the others wait for is named in the log, and when it is given up. Pure;
// time is an argument, from the moment at which this rank began to wait.
class Lateness {
 public:
  struct Options {
    Duration hung_after{};  // one that answers and is late for so long; 0 = never
    Duration warn_after{};  // is named in the log when it is late for so long; 0 = never
  };
  explicit Lateness(const Options& options) : options_(options) {}

  // What is known of one rank just now.
  struct View {
    std::string name;
    std::string lost;      // the reason why it counts as lost, in words that follow its name
    bool answers = false;  // its network thread does
    bool waits = false;    // it waits for the exchange as this rank does
  };

  struct Verdict {
    std::string lost;               // the rank to give up; empty: none
    std::string why;                // in words that follow its name
    std::vector<std::string> late;  // to be named in the log now
  };
  // `waited`: the wait so far.
  Verdict judge(const std::vector<View>& views, Duration waited);

  // The exchange has ended: resets the judgement for the next wait.
  void reset();

 private:
  const Options options_;
  bool warned_ = false;
};

}  // namespace dpwa::collective

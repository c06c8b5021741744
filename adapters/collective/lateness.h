#pragma once

#include <string>
#include <vector>

#include "dpwa/base/time.h"

namespace dpwa::collective {

// Decides when a rank that the others wait for is named in the log, and when it is lost. Pure; time
// is an argument, from the moment at which this rank began to wait.
class Lateness {
 public:
  struct Options {
    Duration hung_after{};  // one that answers and is late for so long; 0 = never
    Duration warn_after{};  // is named in the log when it is late for so long; 0 = never
  };
  explicit Lateness(const Options& options) : options_(options) {}

  // How one rank answered just now.
  struct View {
    std::string name;
    bool answered = false;
    bool refused = false;  // nothing listens there any more
    bool waits = false;    // it answers, and waits for the exchange as this rank does
  };

  struct Verdict {
    std::string lost;               // the rank to give up; empty: none
    std::string why;                // in words that follow its name
    std::vector<std::string> late;  // to be named in the log now
  };
  // `waited`: the wait so far. `silent_for`: a rank whose network thread has not answered for this
  // long is lost.
  Verdict judge(const std::vector<View>& views, Duration waited, Duration silent_for);

  // The exchange has ended: resets the judgement for the next wait.
  void reset();

 private:
  struct Silence {
    std::string name;
    Duration since{};
  };

  Options options_;
  std::vector<Silence> silent_;
  std::vector<std::string> refused_;  // in the last look
  bool warned_ = false;
};

}  // namespace dpwa::collective

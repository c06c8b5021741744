#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa::collective {

// How long a wait for other nodes may last before it is looked into, and how long a node may be
// silent before it counts as lost: learned from the waits and the signs of life of this run, the
// last 64 of each, as the median and eight times the median of the distances from it. Any thread.
class AdaptiveTimeout {
 public:
  // `lost_after`: given by the configuration; 0: learned.
  explicit AdaptiveTimeout(Duration lost_after) : lost_after_(lost_after) {}

  void waited(Duration time);       // for the others, in an exchange that ended well
  void heard_after(Duration time);  // between two signs of life of a node

  Duration before_looking() const;    // from 100 ms to 2 s; 1 s while little is known
  Duration before_lost() const;       // ten times what passes between two, from 2 s to 30 s
  Duration counts_as_silent() const;  // a third of that, from 100 ms to 1 s

 private:
  using Window = std::deque<Duration>;
  static void add(Window& window, Duration time);
  static Duration usual(const Window& window);

  const Duration lost_after_;
  mutable Mutex mutex_;
  Window waits_ DPWA_GUARDED_BY(mutex_);
  Window answers_ DPWA_GUARDED_BY(mutex_);
};

// Decides when a rank that the others wait for is named in the log, and when it is lost. Pure; time
// is an argument, from the moment at which this rank began to wait.
class Lateness {
 public:
  struct Options {
    Duration hung_after{};  // one that answers and is late for so long; 0 = never
    Duration warn_after{};  // is named in the log when it is late for so long; 0 = never
  };
  explicit Lateness(const Options& options) : options_(options) {}

  // What one rank says of itself just now.
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

#pragma once

#include <cstddef>
#include <deque>
#include <mutex>

#include "dpwa/base/time.h"

namespace dpwa::collective {

// How long a wait for other nodes may last before it is looked into, and how long a node may be
// silent before it counts as lost: learned from the waits and the answers of this run, the last 64
// of each, as the median and eight times the median of the distances from it. Any thread.
class Patience {
 public:
  // `lost_after`: given by the configuration; 0: learned.
  explicit Patience(Duration lost_after) : lost_after_(lost_after) {}

  void waited(Duration time);    // for the others, in an exchange that ended well
  void answered(Duration time);  // until all nodes that were asked for their status had answered

  Duration before_looking() const;  // from 100 ms to 2 s; 1 s while little is known
  Duration before_lost() const;     // ten times what an answer takes, from 2 s to 30 s
  Duration of_a_look() const;       // for all answers: a third of that, from 100 ms to 1 s

 private:
  using Window = std::deque<Duration>;
  static void add(Window& window, Duration time);
  static Duration usual(const Window& window);

  const Duration lost_after_;
  mutable std::mutex mutex_;
  Window waits_;  // guarded by mutex_, as the other
  Window answers_;
};

}  // namespace dpwa::collective

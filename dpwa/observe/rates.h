#pragma once

#include <deque>
#include <map>
#include <string>

namespace dpwa::observe {

// How fast the counters of one process grow, over the last seconds. One thread.
class Rates {
 public:
  using Counters = std::map<std::string, double>;

  // Counters at one time, in seconds. A counter that fell begins a new process: the older values
  // are forgotten.
  void add(double time, const Counters& counters);

  // Per second; empty while there is one look only.
  Counters per_second() const;

 private:
  static constexpr double window = 5;  // seconds

  struct Look {
    double time;
    Counters counters;
  };
  std::deque<Look> looks_;
};

}  // namespace dpwa::observe

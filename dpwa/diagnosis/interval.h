#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dpwa/diagnosis/observation.h"

namespace dpwa::diagnosis {

// One direction of a connection between two processes, over the time between two observations.
struct Link {
  std::string from;
  std::string to;
  double rtt_ms = 0;     // the least that was observed
  double steady_ms = 0;  // the most that round trips took for sure
  double segments = 0;
  double segments_again = 0;
  double bytes = 0;
  double all_segments = 0;  // since the connection began
  double all_bytes = 0;
};

// What one process did between the first and the last observation in which it answered with the
// same incarnation.
struct Activity {
  std::string name;
  Process last;
  double seconds = 0;
  double steps = 0;
  double step_s = 0;  // usual time of a step since the start of the process
  double own_s = 0;   // of the time, what it computed, published and blended
  // The same of a step, in the part of the time where it was least: without evaluations and
  // checkpoints, which fall into one part. 0: no steps.
  double own_step_s = 0;
  double publish_s = 0;
  double blend_s = 0;
  double wait_s = 0;
  double cpu_s = 0;
  double cpu_wait_s = 0;
  double main_cpu_s = 0;
  double main_cpu_wait_s = 0;
  double disk_bytes = 0;
  double pulls_ok = 0;
  double clipped = 0;
  std::vector<double> losses;             // of each observation; NaN: not known
  std::vector<double> to_mean;            // likewise
  std::map<std::string, Peer> peers;      // what was added to their counters
  std::map<std::string, unsigned> rests;  // observations in which it let a peer rest
  // Share of its way from the mean model that stays the same between the observations; NaN: not
  // known. 1 / their number where every step throws it elsewhere.
  double steadiness = std::numeric_limits<double>::quiet_NaN();
};

struct HostActivity {
  unsigned processors = 0;
  double seconds = 0;
  double busy_s = 0;
  double disk_wait_s = 0;
  double stolen_s = 0;
  double idle_s = 0;
};

// What lies between the first and the last of several observations.
struct Interval {
  double seconds = 0;
  std::map<std::string, Activity> active;  // the processes that answered at the end
  std::map<std::string, HostActivity> hosts;
  std::vector<Link> links;
};

Interval interval_of(std::span<const Observation> observations);

}  // namespace dpwa::diagnosis

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/diagnosis/observation.h"

namespace dpwa::diagnosis {

// Why a cluster is slow, or learns badly.
enum class Cause : std::uint8_t {
  gone,            // no process listens
  cut_off,         // nothing answers at the address
  frozen,          // a process that is stopped, or hangs
  stalled,         // a program that makes no steps
  stolen_cpu,      // by the hypervisor
  crowded_host,    // more nodes than processors
  other_programs,  // take the processors
  limited_cpu,     // by a quota, or by processors that are shared
  slow_cpu,
  slow_program,  // waits for something outside of dpwa
  disk,
  lossy_link,
  slow_link,
  one_way_link,
  clipped_peers,  // by a bound of the firewall that honest nodes exceed
  other_steps,    // of another size, as with another learning rate
  skewed_data,
};

std::string_view to_string(Cause cause);

struct Finding {
  Cause cause = Cause::gone;
  std::string where;  // "w2", "w1 -> w2", or "w1, w2" on one host
  double share = 0;   // of the time that it takes, about; the findings with the largest come first
  std::string evidence;
  std::string advice;
};

// The findings of at least two observations of one cluster, in the order of time, that are a second
// or more apart; none: nothing is wrong. Judges differences between the observations and between
// the nodes, so it needs no values of a healthy time. Pure.
std::vector<Finding> diagnose(std::span<const Observation> observations);

}  // namespace dpwa::diagnosis

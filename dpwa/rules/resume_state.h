#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace dpwa {

// The part of a checkpoint that belongs to the back end, besides model and optimizer. One written
// under one back end may be restored under another, which takes the clock and ignores `own`.
struct ResumeState {
  double clock = 0;                          // steps, in the unit of StepReport::clock
  std::map<std::string, std::uint64_t> own;  // of the back end that wrote it, by its own names
};

}  // namespace dpwa

#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace dpwa {

// What a checkpoint keeps of a back end, beside the model and the optimizer. A checkpoint written
// under one back end may be restored under another, which takes the clock and ignores `own`.
struct ResumeState {
  double clock = 0;                          // steps, in the unit of StepReport::clock
  std::map<std::string, std::uint64_t> own;  // of the back end that wrote it, by its own names
};

}  // namespace dpwa

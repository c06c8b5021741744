#pragma once

#include <vector>

namespace dpwa {

// The processors that the calling thread may run on, ascending; never empty.
std::vector<int> usable_processors();

}  // namespace dpwa

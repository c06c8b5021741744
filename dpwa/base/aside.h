#pragma once

#include <functional>

namespace dpwa {

// Runs `work` on a thread of its own. For slow work whose result is not needed, such as the end of
// a failed group, or an attempt to form a group that was given up. The end of the program waits
// for it, two seconds at most.
// Any thread; `work` must not throw.
void finish_aside(std::function<void()> work);

}  // namespace dpwa

#pragma once

#include <functional>

namespace dpwa::collective {

// Runs `work` on a thread of its own, for what may take a while and nobody waits for: the end of a
// failed group, the attempt to form one that was given up. The end of the program waits for
// it, two seconds at most.
// Any thread; `work` must not throw.
void finish_aside(std::function<void()> work);

}  // namespace dpwa::collective

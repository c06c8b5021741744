#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace dpwa {

// A thread that blocks all signals: they belong to the program, and its handlers must not run on a
// thread of ours.
std::thread start_background_thread(std::function<void()> body);

// The processors that the calling thread may run on, ascending; never empty.
std::vector<int> usable_processors();

}  // namespace dpwa

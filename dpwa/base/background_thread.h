#pragma once

#include <functional>
#include <thread>

namespace dpwa {

// A thread that blocks all signals: they belong to the program, and its handlers must not run on a
// thread of ours.
std::thread start_background_thread(std::function<void()> body);

}  // namespace dpwa

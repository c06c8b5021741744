#pragma once

#include <chrono>

namespace dpwa::test {

// Moves the wall clock of this process, for everything in it that reads one: names of processes,
// log, TLS. The monotonic clock goes on as it does. May be called by a signal handler.
void move_wall_clock(std::chrono::seconds by);

}  // namespace dpwa::test

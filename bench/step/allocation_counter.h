#pragma once

#include <cstdint>

namespace dpwa::bench {

// Calls of operator new, which this program replaces by one that counts.
std::uint64_t allocations_of_this_thread();
std::uint64_t allocations_of_all_threads();

}  // namespace dpwa::bench

#pragma once

#include <cstdint>

namespace dpwa::test {

// How often the calling thread has taken memory from operator new, in whatever library. Programs
// that use this get the counting operator new.
std::uint64_t allocations();

}  // namespace dpwa::test

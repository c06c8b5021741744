#pragma once

#include <cstdint>

namespace dpwa::test {

// How often the calling thread has taken memory from operator new, in whatever library. Programs
// that use this get the counting operator new.
std::uint64_t allocations();

// The next allocation but `skipped` of any other thread is refused once, with std::bad_alloc.
void refuse_one(std::uint64_t skipped);
// Refuses none any more; tells whether one was refused.
bool refuse_none();

}  // namespace dpwa::test

#pragma once

#include <cstdint>

namespace dpwa::bench {

// Of this process, in KiB; 0 where /proc does not say.
std::uint64_t peak_resident_kib();  // VmHWM
std::uint64_t huge_page_kib();      // of anonymous and shared memory

// Seconds of processor time that this process has used, user and system.
double processor_seconds();

}  // namespace dpwa::bench

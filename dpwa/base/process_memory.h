#pragma once

#include <cstdint>
#include <string>

namespace dpwa {

// Memory of this process, from files of the kernel. Throws std::runtime_error that names the file
// when one cannot be read or written. Linux.

// Resident now, in bytes.
std::uint64_t resident_bytes();

// The most that was resident since the last call of forget_peak(), in bytes.
std::uint64_t peak_bytes();
// Returns unused memory to the system and starts the measurement of the peak anew.
void forget_peak();

// The memory that the process can still get before the system or its control group runs out of it.
std::uint64_t available_bytes();

// The number after `key` in lines such as "VmHWM:   1234 kB", in bytes; throws std::runtime_error
// when it is not there.
std::uint64_t kilobytes_of(const std::string& text, const std::string& key);

}  // namespace dpwa

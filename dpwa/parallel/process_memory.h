#pragma once

#include <cstdint>
#include <string>

namespace dpwa {

// Memory of this process, by the kernel's files; throws std::runtime_error that names the file
// where one cannot be read or written. Linux.

// Resident now, in bytes.
std::uint64_t resident_bytes();

// The most that was resident since the last call of forget_peak(), in bytes.
std::uint64_t peak_bytes();
// Returns unused memory to the system and starts the measurement of the peak anew.
void forget_peak();

// What the process can still get without the system or its control group running out of memory.
std::uint64_t available_bytes();

// The number after `key` in lines such as "VmHWM:   1234 kB", in bytes; throws std::runtime_error
// when it is not there.
std::uint64_t kilobytes_of(const std::string& text, const std::string& key);

}  // namespace dpwa

#pragma once

#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace dpwa::bench {

using Json = nlohmann::ordered_json;

// Properties of the machine that affect figures: processor, kernel, instruction set, huge pages,
// version of dpwa. Unknown values are empty.
Json machine_settings();

// Lets this process, with all threads that it starts from now on, run on one of the cores that it
// may use: the `index`th, counted round and round.
void pin_to_core(std::size_t index);

// Memory that programs may still take, in bytes; 0 = not known.
std::uint64_t available_memory();
// Throws std::runtime_error that names both when there is less than `bytes`.
void require_memory(std::uint64_t bytes);

// The kernel's data on the mappings of a process (/proc/PID/smaps), in KiB.
struct MappedMemory {
  std::uint64_t peers_kib = 0;  // resident pages of snapshots that belong to other processes
  std::uint64_t huge_kib = 0;   // of the process's own memory, on huge pages
};

// `smaps`: of process `pid`. Snapshots are told from one another by the owner's id in their name.
MappedMemory parse_mapped_memory(std::istream& smaps, std::int64_t pid);
MappedMemory mapped_memory();  // of this process; zeros where /proc does not say

// VmHWM of this process in KiB, 0 where /proc does not say. Pages of peers that it has mapped
// count.
std::uint64_t peak_resident_kib();

// Seconds of processor time that this process has used, user and system.
double processor_seconds();

// The kernel's data on the open TCP connections of this process.
struct OpenSockets {
  std::set<std::string> congestion_controls;
  std::uint64_t bytes_received = 0;  // since each was opened
};
OpenSockets open_sockets();

}  // namespace dpwa::bench

#include "bench/measure/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <string>
#include <string_view>

#include "dpwa/snapshot/memory_file.h"

namespace dpwa::bench {
namespace {

// Whether a line of smaps begins a mapping: "7f..-7f.. rw-s 0000 00:01 123   /name". The lines
// about it are "Key:   123 kB".
bool begins_mapping(std::string_view line) {
  return line.find('-') < line.find(' ') && std::isxdigit(static_cast<unsigned char>(line[0])) != 0;
}

std::uint64_t value_of(const std::string& line, std::string_view key) {
  if (!line.starts_with(key)) return 0;
  return std::stoull(line.substr(key.size()));
}

}  // namespace

MappedMemory parse_mapped_memory(std::istream& smaps, std::int64_t pid) {
  const std::string own = MemoryFile::name_of(pid) + ' ';  // "NAME (deleted)"
  MappedMemory result;
  bool of_peer = false;
  for (std::string line; std::getline(smaps, line);) {
    if (begins_mapping(line)) {
      const bool snapshot = line.find(MemoryFile::name_prefix) != std::string::npos;
      of_peer = snapshot && (line + ' ').find(own) == std::string::npos;
    } else if (of_peer) {
      result.peers_kib += value_of(line, "Rss:");
    } else {
      result.huge_kib += value_of(line, "AnonHugePages:") + value_of(line, "ShmemPmdMapped:");
    }
  }
  return result;
}

MappedMemory mapped_memory() {
  std::ifstream stream("/proc/self/smaps");
  return parse_mapped_memory(stream, ::getpid());
}

std::uint64_t peak_resident_kib() {
  std::ifstream stream("/proc/self/status");
  std::uint64_t peak = 0;
  for (std::string line; std::getline(stream, line);) peak += value_of(line, "VmHWM:");
  return peak;
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace dpwa::bench

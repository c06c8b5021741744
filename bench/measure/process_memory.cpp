#include "bench/measure/process_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace dpwa::bench {
namespace {

// Sum of the lines "KEY: 123 kB" of a file.
std::uint64_t sum_of(const char* file, std::initializer_list<std::string_view> keys) {
  std::ifstream stream(file);
  std::uint64_t sum = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::string_view key = std::string_view(line).substr(0, line.find(':'));
    for (const std::string_view wanted : keys) {
      if (key == wanted) sum += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

}  // namespace

std::uint64_t peak_resident_kib() {
  return sum_of("/proc/self/status", {"VmHWM"});
}

std::uint64_t huge_page_kib() {
  return sum_of("/proc/self/smaps_rollup", {"AnonHugePages", "ShmemPmdMapped"});
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

#include "dpwa/base/process_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace dpwa {
namespace {

const char* const status_file = "/proc/self/status";

std::string content_of(const char* file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(std::string(file) + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

// The free part of the limit of the control group; without a limit, the largest number.
std::uint64_t left_in_control_group() {
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream used_file("/sys/fs/cgroup/memory.current");
  std::uint64_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used))  // "max", or not there
    return std::numeric_limits<std::uint64_t>::max();
  return limit - std::min(limit, used);
}

}  // namespace

std::uint64_t kilobytes_of(const std::string& text, const std::string& key) {
  std::size_t at = 0;
  const std::string wanted = key + ":";
  while (at != std::string::npos && text.compare(at, wanted.size(), wanted) != 0) {
    at = text.find('\n', at);
    if (at != std::string::npos) ++at;
  }
  if (at == std::string::npos) throw std::runtime_error("no " + key + " among the memory figures");
  return 1024 * std::stoull(text.substr(at + wanted.size()));
}

std::uint64_t resident_bytes() {
  return kilobytes_of(content_of(status_file), "VmRSS");
}

std::uint64_t peak_bytes() {
  return kilobytes_of(content_of(status_file), "VmHWM");
}

void forget_peak() {
  ::malloc_trim(0);
  const char* const file = "/proc/self/clear_refs";
  std::ofstream out(file);
  out << "5" << std::flush;  // the peak of resident memory, proc(5)
  if (!out) throw std::runtime_error(std::string(file) + ": cannot be written");
}

std::uint64_t available_bytes() {
  return std::min(kilobytes_of(content_of("/proc/meminfo"), "MemAvailable"),
                  left_in_control_group());
}

}  // namespace dpwa

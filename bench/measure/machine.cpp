#include "bench/measure/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/quantity.h"
#include "dpwa/base/version.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

std::string first_line(const char* file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The value behind "KEY<spaces>: " in a file of such lines.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// "always [madvise] never" -> "madvise"
std::string chosen(const std::string& choices) {
  const auto open = choices.find('[');
  const auto close = choices.find(']');
  return open == std::string::npos || close < open ? ""
                                                   : choices.substr(open + 1, close - open - 1);
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

Json machine_settings() {
  Json settings;
  settings["version"] = version();
  settings["instruction_set"] = kernels::instruction_set();
  settings["transparent_huge_pages"] =
      chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  settings["cores"] = usable_cores();
  settings["cpu"] = value_in("/proc/cpuinfo", "model name");
  settings["kernel"] = kernel_release();
  settings["system_congestion_control"] = first_line("/proc/sys/net/ipv4/tcp_congestion_control");
  return settings;
}

std::uint64_t available_memory() {
  const std::string text = value_in("/proc/meminfo", "MemAvailable");  // "123 kB"
  return text.empty() ? 0 : std::stoull(text) * 1024;
}

void require_memory(std::uint64_t bytes) {
  const std::uint64_t available = available_memory();
  if (available == 0 || bytes <= available) return;
  throw std::runtime_error("this takes " + size_text(bytes) + " of memory, and " +
                           size_text(available) + " are available");
}

}  // namespace dpwa::bench

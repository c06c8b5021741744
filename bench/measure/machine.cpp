#include "bench/measure/machine.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "bench/quantity.h"
#include "bench/system_call.h"
#include "dpwa/base/version.h"
#include "dpwa/snapshot/memory_file.h"
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

void pin_to_core(std::size_t index) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) fail("cannot tell the usable cores");
  std::size_t left = index % static_cast<std::size_t>(CPU_COUNT(&usable));
  std::size_t core = 0;
  while (!CPU_ISSET(core, &usable) || left-- > 0) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) fail("cannot keep to one core");
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

namespace {

// TCP_ESTABLISHED of <netinet/tcp.h>, which does not go together with <linux/tcp.h>; that one alone
// has the byte counters.
constexpr std::uint8_t established = 1;

void add(int descriptor, OpenSockets& all) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (info.tcpi_state != established) return;
  constexpr std::size_t needed =
      offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
  if (size >= needed) all.bytes_received += info.tcpi_bytes_received;
  std::array<char, 32> name{};
  size = name.size() - 1;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0)
    all.congestion_controls.insert(name.data());
}

}  // namespace

OpenSockets open_sockets() {
  OpenSockets all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    add(std::stoi(entry.path().filename().string()), all);
  }
  return all;
}

}  // namespace dpwa::bench

#include "dpwa/base/load.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa {
namespace {

namespace fs = std::filesystem;

double seconds_of_ticks(double ticks) {
  static const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks / per_second;
}

std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "time on a processor, time ready to run, slices" in nanoseconds, of a thread or a main thread.
struct Scheduled {
  double cpu_s = 0;
  double wait_s = 0;
};
Scheduled scheduled(const fs::path& file) {
  std::istringstream fields(line_of(file));
  double ran_ns = 0, waited_ns = 0;
  fields >> ran_ns >> waited_ns;
  return {ran_ns / 1e9, waited_ns / 1e9};
}

// proc(5): the name, in parentheses, may have any characters; the fields behind it begin with the
// third one.
double field_of_stat(const fs::path& file, int number) {
  const std::string line = line_of(file);
  const auto end = line.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(line.substr(end + 1));
  std::string skipped;
  for (int at = 3; at < number; ++at) fields >> skipped;
  double value = 0;
  return fields >> value ? value : 0;
}

// Of lines such as "read_bytes: 4096".
std::uint64_t disk_bytes(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t bytes = 0, value = 0;
  for (std::string key; in >> key >> value;)
    if (key == "read_bytes:" || key == "write_bytes:") bytes += value;
  return bytes;
}

std::string allowed_processors(const fs::path& file) {
  constexpr std::string_view key = "Cpus_allowed_list:";
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto from = line.find_first_not_of(" \t", key.size());
    return from == std::string::npos ? "" : line.substr(from);
  }
  return "";
}

// Where sessions share the processors, that of the session; else the control group.
std::string scheduling_group(const fs::path& root) {
  if (line_of(root / "proc/sys/kernel/sched_autogroup_enabled") == "1") {
    const std::string line = line_of(root / "proc/self/autogroup");  // "/autogroup-5 nice 0"
    return line.substr(0, line.find(' '));
  }
  std::ifstream in(root / "proc/self/cgroup");
  std::string group;
  for (std::string line; std::getline(in, line);) {
    const auto path = line.rfind(':');
    const bool unified = line.starts_with("0::");
    if (line.find(":cpu:") != std::string::npos || line.find(":cpu,") != std::string::npos)
      return line.substr(path + 1);
    if (unified) group = line.substr(path + 1);
  }
  return group;
}

}  // namespace

HostLoad host_load(const fs::path& root) {
  HostLoad load;
  load.id = line_of(root / "proc/sys/kernel/random/boot_id");
  std::ifstream in(root / "proc/stat");
  for (std::string line; std::getline(in, line) && line.starts_with("cpu");) {
    if (line[3] != ' ') {
      ++load.processors;
      continue;
    }
    std::istringstream fields(line.substr(4));
    double user = 0, nice = 0, system = 0, idle = 0, disk = 0, irq = 0, soft = 0, stolen = 0;
    fields >> user >> nice >> system >> idle >> disk >> irq >> soft >> stolen;
    load.busy_s = seconds_of_ticks(user + nice + system + irq + soft);
    load.idle_s = seconds_of_ticks(idle);
    load.disk_wait_s = seconds_of_ticks(disk);
    load.stolen_s = seconds_of_ticks(stolen);
  }
  std::istringstream(line_of(root / "proc/loadavg")) >> load.load;
  return load;
}

namespace {

// Also of threads that have ended: without them a counter would fall.
double own_cpu_s() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// The same of what its threads waited, which the kernel forgets with them. `now`: by thread.
double own_wait_s(std::map<std::string, double> now) {
  static Mutex& mutex = *new Mutex;
  static auto& before = *new std::map<std::string, double>;
  static double ended_s = 0;
  const MutexLock lock(mutex);
  for (const auto& [thread, wait_s] : before) {
    const auto found = now.find(thread);
    if (found == now.end() || found->second < wait_s) ended_s += wait_s;
  }
  before = std::move(now);
  double sum = ended_s;
  for (const auto& [thread, wait_s] : before) sum += wait_s;
  return sum;
}

}  // namespace

ProcessLoad process_load(const fs::path& root) {
  ProcessLoad load;
  const fs::path self = root / "proc/self";
  std::error_code error;
  std::map<std::string, double> waits;
  for (const auto& thread : fs::directory_iterator(self / "task", error)) {
    const Scheduled one = scheduled(thread.path() / "schedstat");
    load.cpu_s += one.cpu_s;
    load.cpu_wait_s += one.wait_s;
    waits[thread.path().filename().string()] = one.wait_s;
    ++load.threads;
  }
  if (root == "/") {
    load.cpu_s = own_cpu_s();
    load.cpu_wait_s = own_wait_s(std::move(waits));
  }
  const Scheduled main_thread = scheduled(self / "schedstat");
  load.main_cpu_s = main_thread.cpu_s;
  load.main_cpu_wait_s = main_thread.wait_s;
  constexpr int blkio_ticks = 42;
  constexpr int resident_pages = 24;
  load.disk_wait_s = seconds_of_ticks(field_of_stat(self / "stat", blkio_ticks));
  load.resident_bytes = static_cast<std::uint64_t>(field_of_stat(self / "stat", resident_pages)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  load.disk_bytes = disk_bytes(self / "io");
  load.processors = allowed_processors(self / "status");
  load.group = scheduling_group(root);
  return load;
}

}  // namespace dpwa

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dpwa {

// How busy a machine and this process are, from files of the kernel. Times are seconds since the
// start of the machine or the process, so two readings give the share of the time between them.
// What cannot be read is 0. Reading both takes well under a millisecond. Linux.

struct HostLoad {
  std::string id;           // the same for all processes of one running machine
  unsigned processors = 0;  // online
  double busy_s = 0;        // of all processors together, by this machine
  double idle_s = 0;
  double disk_wait_s = 0;  // idle, while a process waited for a disk
  double stolen_s = 0;     // taken by the hypervisor for other machines
  double load = 0;         // running and waiting threads, mean of a minute
};

struct ProcessLoad {
  double cpu_s = 0;       // processor time of all its threads
  double cpu_wait_s = 0;  // that they were ready to run, and others ran
  double main_cpu_s = 0;  // the same of the main thread, which trains in most programs
  double main_cpu_wait_s = 0;
  double disk_wait_s = 0;        // of the main thread, where the kernel accounts delays
  std::uint64_t disk_bytes = 0;  // that it read from disks and wrote to them
  unsigned threads = 0;
  std::uint64_t resident_bytes = 0;
  std::string processors;  // that its main thread may use: "0-3,8"
  std::string group;  // that the scheduler gives its processor time to: a session or control group
};

// `root`: the folder that stands for /, for tests.
HostLoad host_load(const std::filesystem::path& root = "/");
ProcessLoad process_load(const std::filesystem::path& root = "/");

}  // namespace dpwa

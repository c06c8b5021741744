#include "test/support/memory_files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace dpwa::test {

int mapped_memory_files(pid_t process, pid_t owner) {
  // A line ends with the name and " (deleted)".
  const std::string wanted =
      "memfd:dpwa-snapshot-" + (owner < 0 ? std::string() : std::to_string(owner) + " ");
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(wanted) != std::string::npos) ++count;
  }
  return count;
}

int names_in_dev_shm() {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    if (entry.path().filename().string().find("dpwa") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace dpwa::test

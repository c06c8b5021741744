#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "bench/system_call.h"

namespace dpwa::bench {

// A new folder for temporary files, gone at the end. Throws std::system_error.
class ScratchFolder {
 public:
  ScratchFolder() {
    if (::mkdtemp(path_.data()) == nullptr) fail("cannot make a temporary folder");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "dpwa-bench-XXXXXX").string();
};

}  // namespace dpwa::bench

#pragma once

#include <string>

namespace dpwa::bench {

// A new folder for temporary files, gone at the end. Throws std::system_error.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dpwa::bench

#include "bench/scratch_folder.h"

#include <stdlib.h>

#include <filesystem>

#include "bench/system_call.h"

namespace dpwa::bench {

ScratchFolder::ScratchFolder()
    : path_((std::filesystem::temp_directory_path() / "dpwa-bench-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) fail("cannot make a temporary folder");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dpwa::bench

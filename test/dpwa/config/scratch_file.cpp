#include "test/dpwa/config/scratch_file.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

#include "dpwa/config/config.h"

namespace dpwa::test {

ScratchFile::ScratchFile(const std::string& text) {
  std::string folder = (std::filesystem::temp_directory_path() / "dpwa-config-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw std::runtime_error("no scratch folder");
  path_ = std::filesystem::path(folder) / "cluster.yaml";
  std::ofstream(path_, std::ios::binary) << text;
}

ScratchFile::~ScratchFile() {
  std::error_code ignored;
  std::filesystem::remove_all(path_.parent_path(), ignored);
}

ScopedVariable::ScopedVariable(const char* name, const char* value) : name_(name) {
  setenv(name, value, 1);
}

ScopedVariable::~ScopedVariable() {
  unsetenv(name_);
}

std::string error_of(const std::string& text) {
  const ScratchFile file(text);
  try {
    load_cluster(file.path());
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    const std::string prefix = file.path().string() + ":";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : "no file name: " + message;
  }
  return "";
}

}  // namespace dpwa::test

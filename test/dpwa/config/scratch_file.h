#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "dpwa/config/config.h"
#include "dpwa/config/keys.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {

// A cluster file in a folder of its own, removed at the end of the test.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& text) { write_text(path_, text); }

  const std::filesystem::path& path() const { return path_; }

 private:
  const TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_ / "cluster.yaml";
};

// Sets an environment variable for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

// What load_cluster says of this text, without the path before the first ':'; empty when it loads.
inline std::string error_of(const std::string& text) {
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

// Checks that two configurations agree in every field but the file they came from and the own name.
inline void check_same(const Config& a, const Config& b) {
  for (const config::KeySection& section : config::key_table()) {
    for (const config::Key& key : section.keys) {
      CAPTURE(config::path_of(section, key));
      CHECK(key.print(a) == key.print(b));
    }
  }
  CHECK(a.nodes == b.nodes);
  CHECK(a.kvstore.servers == b.kvstore.servers);
  CHECK(a.interpolation.parameters == b.interpolation.parameters);
}

}  // namespace dpwa::test

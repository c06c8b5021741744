#pragma once

#include <filesystem>
#include <string>

#include "test/support/temporary_directory.h"

namespace dpwa::test {

// A folder for keys and certificates, removed at the end of the test.
class SecretFolder {
 public:
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  // Writes a file with this mode.
  std::filesystem::path write(const std::string& name, const std::string& text,
                              unsigned mode = 0600) const;

 private:
  TemporaryDirectory folder_;
};

// An authority of its own, which signs certificates of nodes for a test.
class TestAuthority {
 public:
  // Writes NAME.pem with its certificate into the folder.
  TestAuthority(const SecretFolder& folder, const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  std::string file() const { return file_; }

  struct Wanted {
    std::string dns;              // in subjectAltName; empty: the common name says who it is
    std::string common_name;      // of the subject
    long seconds = 24 * 60 * 60;  // of validity from now on; below 0: it has expired
  };
  // Writes FILE.pem and FILE.key.
  void sign(const SecretFolder& folder, const std::string& file, const Wanted& wanted) const;

 private:
  struct Pair;
  Pair* pair_;
  std::string file_;
};

}  // namespace dpwa::test

#include "examples/train/files.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include <system_error>

#include "test/examples/temporary_directory.h"

using namespace dpwa;

TEST_CASE("an atomically written file holds all parts and replaces the one before") {
  const test::TemporaryDirectory directory;
  train::write_file_atomically(directory / "file", {"an old and longer text"});
  train::write_file_atomically(directory / "file", {"new ", "text"});
  CHECK(test::read_text(directory / "file") == "new text");
  CHECK_FALSE(std::filesystem::exists(directory / "file.tmp"));
}

TEST_CASE("a file has the mode that it is given less the umask, whatever was in the way") {
  const test::TemporaryDirectory directory;
  const auto mode = [&](const char* name) {
    return std::filesystem::status(directory / name).permissions();
  };
  using std::filesystem::perms;
  test::write_text(directory / "secret.tmp", "of a process that was killed");
  std::filesystem::permissions(directory / "secret.tmp", perms(0644));
  const auto before = ::umask(0002);
  train::write_file_atomically(directory / "plain", {"x"});
  train::write_file_atomically(directory / "secret", {"x"}, 0600);
  ::umask(before);
  CHECK((mode("plain") == perms(0664)));
  CHECK((mode("secret") == perms(0600)));
}

TEST_CASE("a file that cannot be written throws and leaves the old content") {
  const test::TemporaryDirectory directory;
  CHECK_THROWS_AS(train::write_file_atomically(directory / "none/file", {"x"}), std::system_error);
  train::write_file_atomically(directory / "file", {"old"});
  std::filesystem::create_directory(directory / "file.tmp");
  CHECK_THROWS_AS(train::write_file_atomically(directory / "file", {"new"}), std::system_error);
  CHECK(test::read_text(directory / "file") == "old");
}

TEST_CASE("a disk that is full half way leaves the old content and nothing beside it") {
  const test::TemporaryDirectory directory;
  train::write_file_atomically(directory / "file", {"old"});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_AS(train::write_file_atomically(directory / "file", {std::string(10000, 'x')}),
                  std::system_error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(test::read_text(directory / "file") == "old");
  CHECK_FALSE(std::filesystem::exists(directory / "file.tmp"));
}

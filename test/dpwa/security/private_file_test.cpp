#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "dpwa/security/private_file.h"
#include "test/support/certificates.h"

namespace dpwa {
namespace {

using test::SecretFolder;

std::string error_of(const std::filesystem::path& file) {
  const auto text = read_private_file(file, 100);
  return text ? "none" : text.error();
}

SecretText secret(const std::string& text) {
  SecretText made(text.size());
  made.text() = text;
  return made;
}

std::string contents(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

unsigned mode_of(const std::filesystem::path& file) {
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

}  // namespace

TEST_CASE("a file that its owner alone may touch is read") {
  const SecretFolder folder;
  for (const unsigned mode : {0600U, 0400U, 0700U}) {
    const auto text = read_private_file(folder.write("k", "abc", mode), 3);
    REQUIRE(text.has_value());
    CHECK(text->text() == "abc");
    std::filesystem::remove(folder.path("k"));
  }
}

TEST_CASE("a file that group or others may touch is refused with the remedy") {
  const SecretFolder folder;
  for (const unsigned mode : {0640U, 0604U, 0620U, 0602U, 0610U, 0601U, 0666U}) {
    const auto file = folder.write("k", "abc", mode);
    const std::string error = error_of(file);
    CAPTURE(error);
    CHECK(error.starts_with(file.string() + ": may be used by others (mode 0"));
    CHECK(error.ends_with("); remedy: chmod 600 " + file.string()));
  }
}

TEST_CASE("what is no regular file, is missing or too large is refused") {
  const SecretFolder folder;
  CHECK(error_of(folder.path("none")) ==
        folder.path("none").string() +
            ": cannot be read: No such file or directory; accepted: a regular file that this user "
            "may read");
  CHECK(error_of(folder.path("")).find(": is not a regular file; accepted: ") != std::string::npos);
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK(error_of(folder.path("pipe")).find(": is not a regular file; accepted: ") !=
        std::string::npos);
  CHECK(error_of(folder.write("large", std::string(101, 'x'))).ends_with("at most 100 bytes"));
}

TEST_CASE("a file of another user is refused, unless that is root") {
  if (::geteuid() != 0) return;  // only root can give files away
  const SecretFolder folder;
  const auto file = folder.write("k", "abc");
  REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
  CHECK(error_of(file) == file.string() +
                              ": belongs to another user (12345); accepted: a file of this user or "
                              "of root");
}

TEST_CASE("a file is refused where any user could replace it, on whatever way to it") {
  const SecretFolder folder;
  const auto open = folder.path("open");
  std::filesystem::create_directories(open / "own");
  const auto file = folder.write("open/own/k", "abc");
  CHECK(error_of(file) == "none");
  REQUIRE(::chmod(open.c_str(), 0777) == 0);
  const std::string refusal =
      file.string() + ": lies in a folder in which any user may replace it (" + open.string() +
      ", world-writable); remedy: chmod o-w " + open.string() + ", or another folder";
  CHECK(error_of(file) == refusal);
  std::filesystem::create_symlink(file, folder.path("link"));
  CHECK(error_of(folder.path("link")).find("world-writable") != std::string::npos);
  REQUIRE(::chmod(open.c_str(), 01777) == 0);  // as /tmp: others may add, not replace
  CHECK(error_of(file) == "none");
  REQUIRE(::chmod(open.c_str(), 0775) == 0);
  CHECK(error_of(file) == "none");
}

TEST_CASE("the sticky bit of a folder does not bind the user that owns it") {
  if (::geteuid() != 0) return;  // only root can give folders away
  const SecretFolder folder;
  const auto theirs = folder.path("theirs");
  std::filesystem::create_directory(theirs);
  const auto file = folder.write("theirs/k", "abc");
  REQUIRE(::chown(theirs.c_str(), 12345, 12345) == 0);
  REQUIRE(::chmod(theirs.c_str(), 01777) == 0);
  CHECK(error_of(file).find(theirs.string() + ", of user 12345)") != std::string::npos);
}

TEST_CASE("a private file is created for its owner alone and never overwritten") {
  const SecretFolder folder;
  const auto file = folder.path("k");
  const mode_t usual = ::umask(0);
  create_private_file(file, secret("one"));
  ::umask(usual);
  CHECK(mode_of(file) == 0600);
  CHECK_THROWS_WITH(create_private_file(file, secret("two")),
                    (file.string() + ": exists; it is never overwritten").c_str());
  std::filesystem::create_symlink(folder.path("elsewhere"), folder.path("link"));
  CHECK_THROWS(create_private_file(folder.path("link"), secret("two")));
  CHECK(contents(file) == "one");
}

TEST_CASE("a private file is replaced in one step and stays private") {
  const SecretFolder folder;
  const auto file = folder.write("k", "one", 0600);
  replace_private_file(file, secret("two"));
  CHECK(contents(file) == "two");
  CHECK(mode_of(file) == 0600);
  CHECK_THROWS(replace_private_file(folder.path("no/such/folder"), secret("x")));
}

}  // namespace dpwa

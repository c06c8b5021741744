#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <array>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "dpwa/security/key_file.h"
#include "dpwa/security/private_file.h"
#include "test/support/certificates.h"

namespace dpwa {
namespace {

const std::string digits(64, 'a');
const std::string other(64, '7');
constexpr const char* accepted =
    "; accepted: one or two lines of 64 hexadecimal digits, as dpwa keygen writes them";

std::string error_of(const std::string& text) {
  const auto keys = parse_keys(text, "k");
  return keys ? "none" : keys.error();
}

}  // namespace

TEST_CASE("a key file holds one or two keys between comments and blank lines") {
  const auto one = parse_keys("# a comment\n\n  " + digits + " # the key\r\n", "k");
  REQUIRE(one.has_value());
  REQUIRE(one->size() == 1);
  CHECK(one->front().bytes.front() == 0xAA);
  const auto two = parse_keys(digits + "\n" + other, "k");
  REQUIRE(two.has_value());
  REQUIRE(two->size() == 2);
  CHECK(two->back().bytes.back() == 0x77);
}

TEST_CASE("upper and lower case digits are the same key") {
  const auto lower = parse_keys(std::string(64, 'b'), "k");
  const auto upper = parse_keys(std::string(64, 'B'), "k");
  REQUIRE(lower.has_value());
  REQUIRE(upper.has_value());
  CHECK(lower->front() == upper->front());
}

TEST_CASE(
    "a key file that holds no sound key is refused by its line, and its text is not repeated") {
  CHECK(error_of("") == std::string("k: holds no key") + accepted);
  CHECK(error_of("# nothing\n\n") == std::string("k: holds no key") + accepted);
  CHECK(error_of("#\n" + std::string(62, 'a')) ==
        std::string("k:2: is too short: a key of 62 digits") + accepted);
  CHECK(error_of(std::string(66, 'a')) ==
        std::string("k:1: is too long: a key of 66 digits") + accepted);
  CHECK(error_of("secret words") == std::string("k:1: is not a key") + accepted);
  CHECK(error_of(std::string(63, 'a') + "g") == std::string("k:1: is not a key") + accepted);
  CHECK(error_of(std::string(64, '\0')) == std::string("k:1: is not a key") + accepted);
  CHECK(error_of(digits + "\n" + std::string(64, '0')) ==
        std::string("k:2: is not a secret: all its digits are zero") + accepted);
  CHECK(error_of(std::string(63, '0') + "1") == "none");
  CHECK(error_of(digits + "\n" + digits) == std::string("k:2: is the same key again") + accepted);
  CHECK(error_of(digits + "\n" + other + "\n" + std::string(64, '1')) ==
        std::string("k:3: is one key too many") + accepted);
}

TEST_CASE("what is written reads back") {
  const Keys keys{new_key(), new_key()};
  CHECK_FALSE(keys[0] == keys[1]);
  const auto again = parse_keys(key_file_text(keys).text(), "k");
  REQUIRE(again.has_value());
  REQUIRE(again->size() == 2);
  CHECK(again->at(0) == keys[0]);
  CHECK(again->at(1) == keys[1]);
}

namespace {

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

Key key_of(unsigned char first) {
  Key key;
  for (std::size_t i = 0; i < key_bytes; ++i) key.bytes[i] = static_cast<unsigned char>(first + i);
  return key;
}

}  // namespace

// Nodes of different versions must agree: the values never change.
TEST_CASE("what is derived from a key stays the same for ever") {
  const PreSharedKey derived = derive(key_of(0));
  CHECK(hexadecimal(derived.secret.bytes) ==
        "8314557bc40dc329e2b7a43956241ab608b5ca1f10af881f44017f036eb1bc07");
  CHECK(hexadecimal(derived.identity) == "a4d0c2d14306fc5cf8ddf0507bf5dfa8");
}

TEST_CASE("another key has another secret and another identity, and neither shows the key") {
  const PreSharedKey a = derive(key_of(0));
  const PreSharedKey b = derive(key_of(1));
  CHECK_FALSE(a.secret == b.secret);
  CHECK(a.identity != b.identity);
  CHECK_FALSE(a.secret == key_of(0));
  CHECK_FALSE(std::ranges::equal(a.identity, std::span(a.secret.bytes).first(a.identity.size())));
}

TEST_CASE("a key is named by its whole identity alone") {
  const PreSharedKey key = derive(key_of(0));
  auto name = key.identity;
  CHECK(key.is_named(name.data(), name.size()));
  CHECK_FALSE(key.is_named(name.data(), name.size() - 1));
  CHECK_FALSE(key.is_named(name.data(), 0));
  name.back() ^= 1;
  CHECK_FALSE(key.is_named(name.data(), name.size()));
}

namespace {

using test::SecretFolder;

std::string reading_error(const std::filesystem::path& file) {
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

TEST_CASE("a Secret of a group of the process on a read-only volume is private") {
  const std::array<gid_t, 2> own{7, 2000};
  CHECK(is_secret_of_group(0440, 2000, own, true));
  CHECK_FALSE(is_secret_of_group(0440, 2000, own, false));
  CHECK_FALSE(is_secret_of_group(0440, 2001, own, true));
  for (const mode_t mode : {0640, 0460, 0444, 0441, 0450, 0540})
    CHECK_FALSE(is_secret_of_group(mode, 2000, own, true));
}

TEST_CASE("a file that group or others may touch is refused with the remedy") {
  const SecretFolder folder;
  for (const unsigned mode : {0640U, 0604U, 0620U, 0602U, 0610U, 0601U, 0666U}) {
    const auto file = folder.write("k", "abc", mode);
    const std::string error = reading_error(file);
    CAPTURE(error);
    CHECK(error.starts_with(file.string() + ": may be used by others (mode 0"));
    CHECK(error.ends_with("); remedy: chmod 600 " + file.string()));
  }
}

TEST_CASE("what is no regular file, is missing or too large is refused") {
  const SecretFolder folder;
  CHECK(reading_error(folder.path("none")) ==
        folder.path("none").string() +
            ": cannot be read: No such file or directory; accepted: a regular file that this user "
            "may read");
  CHECK(reading_error(folder.path("")).find(": is not a regular file; accepted: ") !=
        std::string::npos);
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK(reading_error(folder.path("pipe")).find(": is not a regular file; accepted: ") !=
        std::string::npos);
  CHECK(reading_error(folder.write("large", std::string(101, 'x'))).ends_with("at most 100 bytes"));
}

TEST_CASE("a file of another user is refused, unless that is root") {
  if (::geteuid() != 0) return;  // only root can give files away
  const SecretFolder folder;
  const auto file = folder.write("k", "abc");
  REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
  CHECK(reading_error(file) ==
        file.string() +
            ": belongs to another user (12345); accepted: a file of this user or "
            "of root");
}

TEST_CASE("a file is refused where any user could replace it, on whatever way to it") {
  const SecretFolder folder;
  const auto open = folder.path("open");
  std::filesystem::create_directories(open / "own");
  const auto file = folder.write("open/own/k", "abc");
  CHECK(reading_error(file) == "none");
  REQUIRE(::chmod(open.c_str(), 0777) == 0);
  const std::string refusal =
      file.string() + ": lies in a folder in which any user may replace it (" + open.string() +
      ", world-writable); remedy: chmod o-w " + open.string() + ", or another folder";
  CHECK(reading_error(file) == refusal);
  std::filesystem::create_symlink(file, folder.path("link"));
  CHECK(reading_error(folder.path("link")).find("world-writable") != std::string::npos);
  REQUIRE(::chmod(open.c_str(), 01777) == 0);  // as /tmp: others may add, not replace
  CHECK(reading_error(file) == "none");
  REQUIRE(::chmod(open.c_str(), 0775) == 0);
  CHECK(reading_error(file) == "none");
}

TEST_CASE("the sticky bit of a folder does not bind the user that owns it") {
  if (::geteuid() != 0) return;  // only root can give folders away
  const SecretFolder folder;
  const auto theirs = folder.path("theirs");
  std::filesystem::create_directory(theirs);
  const auto file = folder.write("theirs/k", "abc");
  REQUIRE(::chown(theirs.c_str(), 12345, 12345) == 0);
  REQUIRE(::chmod(theirs.c_str(), 01777) == 0);
  CHECK(reading_error(file).find(theirs.string() + ", of user 12345)") != std::string::npos);
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

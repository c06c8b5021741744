#include "dpwa/base/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <system_error>

#include "test/support/full_disk.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;

namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const test::TemporaryDirectory& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory.path()))
    names.insert(entry.path().filename().string());
  return names;
}

unsigned mode_of(const fs::path& file) {
  return static_cast<unsigned>(fs::status(file).permissions());
}

std::error_code error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

}  // namespace

TEST_CASE("a file that is written atomically keeps its old content until it is committed") {
  const test::TemporaryDirectory directory;
  test::write_text(directory / "file", "an old and longer text");
  AtomicFile file(directory / "file");
  file.write("new ");
  file.write("text");
  CHECK(test::read_text(directory / "file") == "an old and longer text");
  file.commit();
  CHECK(test::read_text(directory / "file") == "new text");
  CHECK(names_in(directory) == std::set<std::string>{"file"});
}

TEST_CASE("a file that is written through a link is replaced where it is, and the link stays") {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "elsewhere");
  test::write_text(directory / "elsewhere/file", "old");
  fs::create_symlink("elsewhere/file", directory / "link");
  AtomicFile file(directory / "link");
  file.write("new");
  file.commit();
  CHECK(fs::is_symlink(directory / "link"));
  CHECK(test::read_text(directory / "elsewhere/file") == "new");
}

TEST_CASE("what is no file, such as a pipe, stays what it is") {
  const test::TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("pipe", directory / "link");
  CHECK(error_of([&] { AtomicFile file(pipe); }) == std::errc::not_supported);
  CHECK(error_of([&] { AtomicFile file(directory / "link"); }) == std::errc::not_supported);
  CHECK(error_of([&] { AtomicFile file(pipe, directory / "tmp", 0600); }) ==
        std::errc::not_supported);
  CHECK(fs::is_fifo(pipe));
  CHECK(names_in(directory) == std::set<std::string>{"link", "pipe"});
}

TEST_CASE("a file that is not committed stays as it is, and nothing is left beside it") {
  const test::TemporaryDirectory directory;
  test::write_text(directory / "file", "old");
  {
    AtomicFile own(directory / "file");
    AtomicFile named(directory / "file", directory / "file.tmp", 0666);
    own.write("new");
    named.write("new");
    CHECK(names_in(directory).size() == 3);
  }
  CHECK(test::read_text(directory / "file") == "old");
  CHECK(names_in(directory) == std::set<std::string>{"file"});
}

TEST_CASE("a disk that is full half way leaves the old file and nothing beside it") {
  const test::TemporaryDirectory directory;
  test::write_text(directory / "file", "old");
  const std::error_code error = error_of([&] {
    const test::FullDisk full(4096);
    AtomicFile file(directory / "file", directory / "file.tmp", 0666);
    file.write(std::string(10000, 'x'));
    file.commit();
  });
  CHECK(error == std::errc::file_too_large);
  CHECK(test::read_text(directory / "file") == "old");
  CHECK(names_in(directory) == std::set<std::string>{"file"});
}

TEST_CASE("a file that cannot take its name leaves nothing beside it") {
  const test::TemporaryDirectory directory;
  fs::create_directories(directory / "file/full");
  CHECK(error_of([&] {
    AtomicFile file(directory / "file");
    file.write("text");
    file.commit();
  }));
  CHECK(names_in(directory) == std::set<std::string>{"file"});
}

TEST_CASE("an error of a file that is written atomically names the file") {
  const test::TemporaryDirectory directory;
  const fs::path file = directory / "none/file";
  const auto message =
      test::message_of<std::system_error>([&] { AtomicFile(file, directory / "none/tmp", 0666); });
  CHECK(message == file.string() + ": No such file or directory");
  CHECK(error_of([&] { AtomicFile{file}; }) == std::errc::no_such_file_or_directory);
  fs::create_directory(directory / "tmp");
  CHECK(error_of([&] { AtomicFile(directory / "file", directory / "tmp", 0666); }) ==
        std::errc::is_a_directory);
}

TEST_CASE("a temporary file of a killed process, or a link in its place, is replaced") {
  const test::TemporaryDirectory directory;
  test::write_text(directory / "elsewhere", "kept");
  for (const bool link : {false, true}) {
    if (link) {
      fs::create_symlink(directory / "elsewhere", directory / "tmp");
    } else {
      test::write_text(directory / "tmp", "of a process that was killed, and longer");
      fs::permissions(directory / "tmp", fs::perms(0644));
    }
    AtomicFile file(directory / "file", directory / "tmp", 0600);
    file.write("text");
    file.commit();
    CHECK(test::read_text(directory / "file") == "text");
    CHECK(mode_of(directory / "file") == 0600);
  }
  CHECK(test::read_text(directory / "elsewhere") == "kept");
}

TEST_CASE("the umask bounds the mode that a file begins with, and not one that is set") {
  const test::TemporaryDirectory directory;
  const ::mode_t usual = ::umask(0027);
  AtomicFile(directory / "own").commit();
  AtomicFile(directory / "named", directory / "tmp", 0666).commit();
  AtomicFile set(directory / "set");
  set.set_mode(0644);
  set.commit();
  ::umask(usual);
  CHECK(mode_of(directory / "own") == 0600);
  CHECK(mode_of(directory / "named") == 0640);
  CHECK(mode_of(directory / "set") == 0644);
}

TEST_CASE("two writers of one file do not share a temporary file") {
  const test::TemporaryDirectory directory;
  AtomicFile first(directory / "file");
  AtomicFile second(directory / "file");
  first.write("first");
  second.write("second");
  second.commit();
  CHECK(test::read_text(directory / "file") == "second");
  first.commit();
  CHECK(test::read_text(directory / "file") == "first");
}

TEST_CASE("what cannot be written whole is an error") {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full.valid());
  CHECK_FALSE(write_all(full.get(), std::as_bytes(std::span("text"))));
  CHECK(errno == ENOSPC);
}

TEST_CASE(
    "a file is read to its end or to that of the buffer, and what cannot be read is an error") {
  const test::TemporaryDirectory directory;
  test::write_text(directory / "file", "seven 7");
  const FileDescriptor file(::open((directory / "file").c_str(), O_RDONLY | O_CLOEXEC));
  std::string buffer(4, ' ');
  const auto bytes = std::as_writable_bytes(std::span(buffer));
  CHECK(read_all(file.get(), bytes) == 4);
  CHECK(buffer == "seve");
  CHECK(read_all(file.get(), bytes) == 3);
  CHECK(buffer == "n 7e");
  CHECK(read_all(file.get(), bytes) == 0);
  const FileDescriptor folder(::open(directory.path().c_str(), O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(read_all(folder.get(), bytes));
  CHECK(errno == EISDIR);
}

TEST_CASE("a folder is synced, and what is none is an error") {
  const test::TemporaryDirectory directory;
  CHECK_FALSE(sync_folder(directory.path()));
  test::write_text(directory / "file", "");
  CHECK(sync_folder(directory / "file") == std::errc::not_a_directory);
  CHECK(folder_of("file") == ".");
  CHECK(folder_of("a/file") == "a");
}

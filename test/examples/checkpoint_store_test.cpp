#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "dpwa/config/config.h"
#include "examples/train/checkpoint_store.h"
#include "test/support/sanitized.h"
#include "test/support/temporary_directory.h"

using namespace dpwa;
using train::CheckpointStore;

namespace {

struct Store {
  test::TemporaryDirectory directory;
  std::vector<std::string> warnings;
  CheckpointStore store{directory / "checkpoints", "w1",
                        [this](const std::string& text) { warnings.push_back(text); }};
  std::filesystem::path file(const std::string& name) const {
    return directory / "checkpoints" / name;
  }
};

void flip_last_byte(const std::filesystem::path& file) {
  std::string bytes = test::read_text(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_text(file, bytes);
}

}  // namespace

TEST_CASE_FIXTURE(Store, "a store without files is empty and loads nothing") {
  CHECK_NOTHROW(store.require_directory(false));
  CHECK_FALSE(store.load_latest().has_value());
}

TEST_CASE_FIXTURE(Store, "the checkpoint of the highest step is loaded, not the last by name") {
  store.save(9, "nine");
  store.save(10, "ten");
  const auto loaded = store.load_latest();
  REQUIRE(loaded);
  CHECK(loaded->body == "ten");
  CHECK(loaded->file == file("w1.10.ckpt"));
  CHECK_NOTHROW(store.require_directory(true));
  CHECK(test::has(test::message_of<ConfigError>([&] { store.require_directory(false); }),
                  "' holds checkpoints of w1; accepted: with --resume, or another directory"));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Store, "a directory that cannot be used is refused before the run") {
  const std::string path = (directory / "checkpoints").string();
  CHECK(test::has(test::message_of<ConfigError>([&] { store.require_directory(true); }),
                  "--resume: '" + path + "' does not exist; accepted: "));
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_NOTHROW(store.require_directory(false));  // makes it
  CHECK(std::filesystem::is_directory(path));
  CHECK_NOTHROW(store.require_directory(true));  // an empty one is a new run
  CHECK(std::filesystem::is_empty(path));
  std::filesystem::remove(path);
  test::write_text(path, "a file");
  CHECK(test::has(test::message_of<ConfigError>([&] { store.require_directory(false); }),
                  "--checkpoint: '" + path + "' is not a directory; accepted: a directory that "));
  CheckpointStore within(std::filesystem::path(path) / "deeper", "w1", {});
  CHECK(test::has(test::message_of<ConfigError>([&] { within.require_directory(false); }),
                  "--checkpoint: '" + path + "/deeper' "));
  // Nobody, root included, makes files there.
  CheckpointStore unwritable("/proc/self", "w1", {});
  CHECK(test::has(test::message_of<ConfigError>([&] { unwritable.require_directory(false); }),
                  "--checkpoint: '/proc/self' cannot be written: "));
}

TEST_CASE_FIXTURE(Store, "a checkpoint is for its owner alone") {
  store.save(1, "body");
  struct stat status {};
  REQUIRE(::stat(file("w1.1.ckpt").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE_FIXTURE(Store, "only the two latest checkpoints are kept") {
  for (const int step : {1, 2, 3}) store.save(step, "body");
  CHECK_FALSE(std::filesystem::exists(file("w1.1.ckpt")));
  CHECK(std::filesystem::exists(file("w1.2.ckpt")));
  CHECK(std::filesystem::exists(file("w1.3.ckpt")));
}

TEST_CASE_FIXTURE(Store,
                  "a checkpoint whose weights were given up stays when later ones are saved") {
  store.save(300, "given up");
  for (int time = 0; time < 2; ++time) store.keep(file("w1.300.ckpt"));
  CHECK(warnings ==
        std::vector<std::string>(2, "the weights of checkpoint " + file("w1.300.ckpt").string() +
                                        " were given up; it stays as *.kept"));
  for (const std::uint64_t step : {302, 304, 306}) store.save(step, "later");
  CHECK_FALSE(std::filesystem::exists(file("w1.300.ckpt")));
  std::filesystem::rename(file("w1.300.ckpt.kept"), file("w1.308.ckpt"));
  CHECK(store.load_latest()->body == "given up");
  std::filesystem::remove(file("w1.308.ckpt"));
  CHECK(store.load_latest()->body == "later");
}

TEST_CASE_FIXTURE(Store, "a damaged checkpoint is named, set aside, and the one before is taken") {
  store.save(1, "first body");
  store.save(2, "second body");
  SUBCASE("a flipped bit") {
    flip_last_byte(file("w1.2.ckpt"));
  }
  SUBCASE("cut off in the body") {
    std::filesystem::resize_file(file("w1.2.ckpt"), 30);
  }
  SUBCASE("cut off in the header") {
    std::filesystem::resize_file(file("w1.2.ckpt"), 7);
  }
  SUBCASE("empty") {
    std::filesystem::resize_file(file("w1.2.ckpt"), 0);
  }
  SUBCASE("another file") {
    test::write_text(file("w1.2.ckpt"), std::string(100, 'x'));
  }
  SUBCASE("a terabyte behind its header") {
    std::filesystem::resize_file(file("w1.2.ckpt"), std::uintmax_t(1) << 40);
  }
  SUBCASE("a pipe") {
    std::filesystem::remove(file("w1.2.ckpt"));
    REQUIRE(::mkfifo(file("w1.2.ckpt").c_str(), 0600) == 0);
  }
  SUBCASE("a device") {
    std::filesystem::remove(file("w1.2.ckpt"));
    std::filesystem::create_symlink("/dev/zero", file("w1.2.ckpt"));
  }
  SUBCASE("a directory") {
    std::filesystem::remove(file("w1.2.ckpt"));
    std::filesystem::create_directories(file("w1.2.ckpt/in it"));
  }
  const auto loaded = store.load_latest();
  REQUIRE(loaded);
  CHECK(loaded->body == "first body");
  REQUIRE(warnings.size() == 1);
  CHECK(test::has(warnings[0], "w1.2.ckpt is damaged"));
  CHECK(test::has(warnings[0], "set aside as *.damaged"));
  CHECK(std::filesystem::exists(file("w1.2.ckpt.damaged")));

  store.save(2, "second body again");  // the good older one is not pushed out by the damaged one
  CHECK(std::filesystem::exists(file("w1.1.ckpt")));
}

TEST_CASE_FIXTURE(Store,
                  "a damaged checkpoint that cannot be renamed stays, and the one before counts") {
  for (const int step : {6, 7}) store.save(step, "good");
  store.save(9, "damaged soon");
  flip_last_byte(file("w1.9.ckpt"));
  std::filesystem::create_directories(file("w1.9.ckpt.damaged/in the way"));
  const auto loaded = store.load_latest();
  REQUIRE(loaded);
  CHECK(loaded->file == file("w1.7.ckpt"));
  REQUIRE(warnings.size() == 1);
  CHECK(test::has(warnings[0],
                  "w1.9.ckpt is damaged: its checksum does not match; it stays there because it "
                  "cannot be renamed: "));
  CHECK(std::filesystem::exists(file("w1.9.ckpt")));

  store.save(8, "newer");  // the damaged one is not one of the two that are kept
  CHECK(std::filesystem::exists(file("w1.7.ckpt")));
}

TEST_CASE_FIXTURE(Store,
                  "a latest checkpoint that cannot be read ends the start, and keeps its name") {
  store.save(1, "first body");
  store.save(2, "second body");
  std::string reason;
  SUBCASE("no right to read it") {
    if (::geteuid() == 0) return;  // has every right
    std::filesystem::permissions(file("w1.2.ckpt"), std::filesystem::perms::none);
    reason = "Permission denied";
  }
  SUBCASE("a link to what is not mounted") {
    std::filesystem::rename(file("w1.2.ckpt"), directory / "elsewhere");
    std::filesystem::create_symlink("/none/elsewhere", file("w1.2.ckpt"));
    reason = "No such file";
  }
  const auto why = test::message_of<ConfigError>([&] { store.load_latest(); });
  CHECK(test::has(why, "w1.2.ckpt cannot be read: " + reason));
  CHECK(std::filesystem::symlink_status(file("w1.2.ckpt")).type() !=
        std::filesystem::file_type::not_found);
  CHECK_FALSE(std::filesystem::exists(file("w1.2.ckpt.damaged")));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Store, "a directory that cannot be read is not one without checkpoints") {
  std::filesystem::create_symlink(directory / "checkpoints", directory / "checkpoints");
  CHECK(test::has(test::message_of<ConfigError>([&] { store.load_latest(); }), "--checkpoint: '"));
  CHECK(test::has(test::message_of<ConfigError>([&] { store.require_directory(false); }),
                  "--checkpoint: '"));
}

TEST_CASE_FIXTURE(Store, "a checkpoint for which there is no memory is not called damaged" *
                             doctest::skip(test::sanitized)) {  // sanitizers take all addresses
  store.save(1, "first body");
  constexpr std::size_t body_bytes = std::size_t(1) << 30;
  std::string header = train::checkpoint_header("");
  for (int i = 0; i < 8; ++i) header[16 + i] = static_cast<char>(body_bytes >> (8 * i));
  test::write_text(file("w1.2.ckpt"), header);
  std::filesystem::resize_file(file("w1.2.ckpt"), header.size() + body_bytes);
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit tight{rlim_t(1) << 30, before.rlim_max};
  ::setrlimit(RLIMIT_AS, &tight);
  std::string why;
  try {
    store.load_latest();
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  ::setrlimit(RLIMIT_AS, &before);
  CHECK(test::has(why, "w1.2.ckpt: no memory for its 1073741848 bytes"));
  CHECK(std::filesystem::exists(file("w1.2.ckpt")));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Store, "when every checkpoint is damaged nothing is started") {
  store.save(1, "body");
  flip_last_byte(file("w1.1.ckpt"));
  CHECK(test::has(test::message_of<ConfigError>([&] { store.load_latest(); }), "is damaged"));
  // Nor by a second try, which finds it set aside.
  CHECK(test::has(test::message_of<ConfigError>([&] { store.load_latest(); }), "*.damaged"));
}

TEST_CASE_FIXTURE(Store, "files of other nodes and other kinds are left alone") {
  store.save(1, "mine");
  for (const char* name : {"w10.9.ckpt", "w1.x.ckpt", "w1.7.ckpt.damaged", "w1.8.ckpt.tmp"})
    test::write_text(file(name), "other");
  CHECK(store.load_latest()->body == "mine");
  store.save(2, "mine");
  store.save(3, "mine");
  CHECK(std::filesystem::exists(file("w10.9.ckpt")));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Store, "what a killed process left half written is removed, of this node alone") {
  store.remove_unfinished();  // there is no directory yet
  store.save(1, "mine");
  for (const char* name : {"w1.2.ckpt.tmp", "w1.13.ckpt.tmp"}) test::write_text(file(name), "half");
  const auto others = {"w10.9.ckpt.tmp", "w1.x.ckpt.tmp", "w1.7.ckpt.damaged", "w1.5.7.ckpt.tmp"};
  for (const char* name : others) test::write_text(file(name), "other");
  store.remove_unfinished();
  CHECK_FALSE(std::filesystem::exists(file("w1.2.ckpt.tmp")));
  CHECK_FALSE(std::filesystem::exists(file("w1.13.ckpt.tmp")));
  for (const char* name : others) CHECK(std::filesystem::exists(file(name)));
  CHECK(store.load_latest()->body == "mine");
}

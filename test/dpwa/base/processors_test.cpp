#include "dpwa/base/processors.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "dpwa/base/threads.h"

using namespace dpwa;

namespace {

namespace fs = std::filesystem;

const std::string v2_mount =
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string v1_mounts =
    "30 23 0:27 / /sys rw - sysfs sysfs rw\n"
    "34 30 0:31 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
    "35 30 0:32 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

// The kernel's files of one process, below a folder of its own.
class FakeTree {
 public:
  FakeTree(const std::string& mounts, const std::string& groups) {
    write("proc/self/mountinfo", mounts);
    write("proc/self/cgroup", groups);
  }
  ~FakeTree() { fs::remove_all(root_); }

  FakeTree& write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return *this;
  }
  std::optional<double> quota() const { return cpu_quota(root_); }

 private:
  const fs::path root_ = [] {
    std::string name = (fs::temp_directory_path() / "dpwa-processors-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return fs::path(name);
  }();
};

}  // namespace

TEST_CASE("the quota of cgroup v2 is the least one from the group of the process up to the mount") {
  FakeTree tree(v2_mount, "0::/pods/one\n");
  tree.write("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  CHECK_FALSE(tree.quota());
  tree.write("sys/fs/cgroup/pods/cpu.max", "150000 100000\n");
  CHECK(tree.quota() == 1.5);
  tree.write("sys/fs/cgroup/pods/one/cpu.max", "50000 100000\n");
  CHECK(tree.quota() == 0.5);
  tree.write("sys/fs/cgroup/cpu.max", "20000 100000\n");
  CHECK(tree.quota() == 0.2);
}

TEST_CASE("the quota of cgroup v1 is that of the hierarchy of the controller cpu") {
  FakeTree tree(v1_mounts, "5:cpuset:/other\n4:cpu,cpuacct:/one\n0::/one\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "-1\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(tree.quota());
  tree.write("sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "250000\n");
  CHECK(tree.quota() == 2.5);
}

TEST_CASE("a container that sees its own group as the root, or only its part, has its quota") {
  FakeTree as_root(v2_mount, "0::/\n");
  as_root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  CHECK(as_root.quota() == 0.5);

  FakeTree part("31 23 0:28 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/docker/x/y");
  part.write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  part.write("sys/fs/cgroup/y/cpu.max", "200000 100000\n");
  CHECK(part.quota() == 2);

  FakeTree outside("31 23 0:28 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/../z");
  outside.write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  CHECK(outside.quota() == 3);
}

TEST_CASE("what is no quota limits nothing") {
  CHECK_FALSE(cpu_quota("/nowhere"));
  CHECK_FALSE(FakeTree("", "").quota());
  CHECK_FALSE(FakeTree("1\n- -\n" + v2_mount, "x\n0::/a\n").quota());
  for (const std::string text : {"", "max", "0 100000", "-1 100000", "100000 0", "x y"}) {
    FakeTree tree(v2_mount, "0::/\n");
    tree.write("sys/fs/cgroup/cpu.max", text);
    CHECK_FALSE(tree.quota());
  }
}

TEST_CASE("a quota is rounded up to threads, of which there is always one") {
  CHECK(threads_within(4, std::nullopt) == 4);
  CHECK(threads_within(2, 0.5) == 1);
  CHECK(threads_within(2, 1.0) == 1);
  CHECK(threads_within(4, 1.5) == 2);
  CHECK(threads_within(4, 1e9) == 4);
  CHECK(threads_within(0, 0.01) == 1);
  CHECK(processor_count() >= 1);
  CHECK(processor_count() <= usable_processors().size());
}

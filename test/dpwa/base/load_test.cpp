#include "dpwa/base/load.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "test/support/temporary_directory.h"

namespace dpwa {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("the times of a machine are those of all its processors") {
  const test::TemporaryDirectory root;
  write(root.path() / "proc/stat",
        "cpu  100 100 200 3000 400 0 100 50 7 0\ncpu0 50 50 100 1500 200 0 50 25 7 0\n"
        "cpu1 50 50 100 1500 200 0 50 25 0 0\nintr 1 2 3\n");
  write(root.path() / "proc/loadavg", "1.25 0.5 0.25 2/100 1234\n");
  write(root.path() / "proc/sys/kernel/random/boot_id", "a-b-c\n");
  const HostLoad load = host_load(root.path());
  CHECK(load.id == "a-b-c");
  CHECK(load.processors == 2);
  CHECK(load.busy_s == doctest::Approx(5));
  CHECK(load.idle_s == doctest::Approx(30));
  CHECK(load.disk_wait_s == doctest::Approx(4));
  CHECK(load.stolen_s == doctest::Approx(0.5));
  CHECK(load.load == doctest::Approx(1.25));
}

TEST_CASE("the times of a process are those of its threads") {
  const test::TemporaryDirectory root;
  write(root.path() / "proc/self/schedstat", "2000000000 500000000 10\n");
  write(root.path() / "proc/self/task/7/schedstat", "2000000000 500000000 10\n");
  write(root.path() / "proc/self/task/8/schedstat", "1000000000 250000000 10\n");
  write(
      root.path() / "proc/self/stat",
      "7 (a ) name) R 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 9 1000 10 0 0 0 0 0 0 0 0 0 0 0 0 0 17 "
      "0 0 0 300 0 0\n");
  write(root.path() / "proc/self/io",
        "rchar: 9\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 7\n");
  SUBCASE("with the session, where sessions share the processors") {
    write(root.path() / "proc/sys/kernel/sched_autogroup_enabled", "1\n");
    write(root.path() / "proc/self/autogroup", "/autogroup-5 nice 0\n");
    CHECK(process_load(root.path()).group == "/autogroup-5");
  }
  SUBCASE("with the control group elsewhere") {
    write(root.path() / "proc/self/cgroup", "4:memory:/m\n1:cpu,cpuacct:/jobs\n0::/u\n");
    CHECK(process_load(root.path()).group == "/jobs");
  }
  write(root.path() / "proc/self/status", "Name:\ta\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n");
  const ProcessLoad load = process_load(root.path());
  CHECK(load.processors == "0-1");
  CHECK(load.cpu_s == doctest::Approx(3));
  CHECK(load.cpu_wait_s == doctest::Approx(0.75));
  CHECK(load.main_cpu_s == doctest::Approx(2));
  CHECK(load.main_cpu_wait_s == doctest::Approx(0.5));
  CHECK(load.disk_wait_s == doctest::Approx(3));
  CHECK(load.disk_bytes == 4608);
  CHECK(load.threads == 2);
  CHECK(load.resident_bytes >= 10 * 4096);
}

TEST_CASE("where the kernel does not tell, the loads are zero") {
  const test::TemporaryDirectory root;
  CHECK(host_load(root.path()).processors == 0);
  CHECK(process_load(root.path()).threads == 0);
}

TEST_CASE("this process has used processor time") {
  CHECK(host_load().processors >= 1);
  CHECK(process_load().threads >= 1);
  CHECK(process_load().main_cpu_s > 0);
}

}  // namespace dpwa

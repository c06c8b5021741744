#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <list>

#include "dpwa/base/file_descriptor.h"
#include "test/process/cluster_run.h"
#include "test/support/raw_socket.h"

namespace dpwa {
namespace {

using test::ClusterRun;
using test::holds_in_time;

constexpr const char* settings =
    "gossip: {timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}\n"
    "transport: {same_host: off}";

bool said(const ClusterRun& run, const std::string& name, const std::string& text) {
  return test::has(run.log(name), text);
}

std::size_t open_descriptors(pid_t pid) {
  const auto folder = std::filesystem::path("/proc") / std::to_string(pid) / "fd";
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

void limit_descriptors(pid_t pid, std::size_t count) {
  rlimit limit{};
  REQUIRE(::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) == 0);
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  REQUIRE(::prlimit(pid, RLIMIT_NOFILE, &limit, nullptr) == 0);
}

// The first ones of its nodes alone.
void write_cluster_file(const ClusterRun& run, std::size_t nodes) {
  // Into place as a whole: the node may read it at any moment.
  const auto next = run.directory() / "next.yaml";
  std::ofstream file(next);
  file << "nodes:\n";
  for (std::size_t i = 0; i < nodes; ++i)
    file << "  - {name: " << run.names()[i] << ", port: " << run.ports()[i] << "}\n";
  file << settings << "\n";
  file.close();
  std::filesystem::rename(next, run.file());
}

}  // namespace

TEST_CASE("a node that is taken out of the file and put back is pulled from again") {
  ClusterRun run(2, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed", "w2") > 5; }));
  write_cluster_file(run, 1);
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", "reloaded: nodes[w2].name: w2 -> none"); }));
  write_cluster_file(run, 2);
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", "reloaded: nodes[w2].name: none -> w2"); }));
  run.process("w1").signal(SIGHUP);
  CHECK(
      holds_in_time([&] { return said(run, "w1", "reloaded: the cluster file has not changed"); }));
  const std::size_t from = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.count("w1", from, "mixed", "w2") > 5; }));
  CHECK(run.finishes_well());
}

TEST_CASE("a node whose log nobody reads any more goes on") {
  ClusterRun run(2, settings);
  const auto pipe = run.directory() / "w1.log";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  {
    const FileDescriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    run.start_all({"--step-ms", "4"});
    CHECK(holds_in_time([&] { return run.count("w1", 0, "mixed") > 5; }));
    std::filesystem::remove(pipe);
  }
  run.process("w1").signal(SIGHUP);  // has it log a line
  const std::size_t from = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.steps("w1").size() > from + 50; }));
  CHECK(run.finishes_well());
}

TEST_CASE("a node without free descriptors goes on training, and serves again once it has some") {
  ClusterRun run(3, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time(
      [&] { return run.count("w1", 0, "mixed") > 5 && run.count("w2", 0, "mixed", "w1") > 0; }));
  const pid_t pid = run.process("w1").id();
  limit_descriptors(pid, open_descriptors(pid) + 2);
  {
    std::list<test::RawSocket> flood;
    for (int i = 0; i < 40; ++i) flood.emplace_back(run.ports()[0]);
    CHECK(holds_in_time([&] { return said(run, "w1", "Too many open files"); }));
    const std::size_t from = run.steps("w1").size();
    CHECK(holds_in_time([&] { return run.steps("w1").size() > from + 50; }));
  }
  const std::size_t from = run.steps("w2").size();
  const std::size_t own = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.count("w2", from, "mixed", "w1") > 2; }));
  CHECK(holds_in_time([&] { return run.count("w1", own, "mixed") > 2; }));
  CHECK(run.finishes_well());
}

}  // namespace dpwa

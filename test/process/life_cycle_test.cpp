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
  return run.log(name).find(text) != std::string::npos;
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

void write_cluster_file(const ClusterRun& run, const std::string& more) {
  // Into place as a whole: the node may read it at any moment.
  const auto next = run.directory() / "next.yaml";
  std::ofstream file(next);
  file << "nodes:\n";
  for (std::size_t i = 0; i < run.names().size(); ++i)
    file << "  - {name: " << run.names()[i] << ", port: " << run.ports()[i] << "}\n";
  file << more << "\n";
  file.close();
  std::filesystem::rename(next, run.file());
}

}  // namespace

TEST_CASE("SIGHUP takes over what may change, names what may not, and survives a wrong file") {
  ClusterRun run(2, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed") > 5; }));
  write_cluster_file(run,
                     "gossip: {timeout_ms: 900, pull_probability: 0, start_wait_ms: 60s, "
                     "finish_wait_ms: 30s, blend: lerp}\ntransport: {same_host: off}");
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", "reloaded: gossip.timeout_ms: 500 -> 900"); }));
  CHECK(said(run, "w1", "reloaded: gossip.pull_probability: 1 -> 0"));
  CHECK(holds_in_time([&] {
    return said(run, "w1", "needs a restart, not taken over: gossip.blend: delta -> lerp");
  }));
  // It pulls no more, and is pulled from as before.
  const std::size_t from = run.steps("w1").size() + 150;  // after the pull under way
  const std::size_t from_2 = run.steps("w2").size();
  REQUIRE(holds_in_time([&] { return run.steps("w1").size() > from + 50; }));
  CHECK(run.count("w1", from, "mixed") == 0);
  CHECK(holds_in_time([&] { return run.count("w2", from_2, "mixed", "w1") > 5; }));

  write_cluster_file(run, "gossip: {timeout_ms: soon}");
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", "not reloaded: "); }));
  CHECK(said(run, "w1", "gossip.timeout_ms"));
  CHECK(run.finishes_well());
}

TEST_CASE(
    "SIGHUP with a pipe for a cluster file that nobody writes does not hold up the training") {
  ClusterRun run(2, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed") > 5; }));
  std::filesystem::remove(run.file());
  REQUIRE(::mkfifo(run.file().c_str(), 0600) == 0);
  run.process("w1").signal(SIGHUP);
  // How long it waited is in the line.
  CHECK(holds_in_time([&] {
    return said(run, "w1", "is a pipe that no process has opened for writing; accepted: ");
  }));
  const FileDescriptor silent(::open(run.file().c_str(), O_RDWR | O_CLOEXEC));
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", " 50 ms; accepted: "); }));
  const std::size_t from = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.count("w1", from, "mixed", "w2") > 5; }));
  CHECK(run.finishes_well());
}

TEST_CASE("SIGHUP with a log.file that cannot be opened changes nothing, and the run goes on") {
  ClusterRun run(2, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed") > 5; }));
  write_cluster_file(run, "gossip: {timeout_ms: 900}\nlog: {file: /dev/null/w1.log}");
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] {
    return said(run, "w1",
                "not reloaded: " + run.file().string() +
                    ":5: "
                    "log.file: ");
  }));
  CHECK_FALSE(said(run, "w1", " reloaded: gossip.timeout_ms"));
  // What was not taken over is still new the next time, and the log is where it was.
  write_cluster_file(run, "gossip: {timeout_ms: 900}");
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", " reloaded: gossip.timeout_ms: 500 -> 900"); }));
  const std::size_t from = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.count("w1", from, "mixed", "w2") > 5; }));
  CHECK(run.finishes_well());
}

TEST_CASE("a log.file that cannot be opened at the start is an error of the cluster file") {
  ClusterRun run(1, "log: {file: /dev/null/w1.log}");
  run.start("w1");
  CHECK(run.wait("w1") == 2);
  CHECK(said(run, "w1", run.file().string() + ":3: log.file: "));
  CHECK(said(run, "w1", "; accepted: a file that can be written, or \"\" for stderr"));
}

TEST_CASE("a node that is taken out of the file and put back is pulled from again") {
  ClusterRun run(2, settings);
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed", "w2") > 5; }));
  {
    std::ofstream file(run.directory() / "next.yaml");
    file << "nodes: [{name: w1, port: " << run.ports()[0] << "}]\n" << settings << "\n";
  }
  std::filesystem::rename(run.directory() / "next.yaml", run.file());
  run.process("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return said(run, "w1", "reloaded: nodes[w2].name: w2 -> none"); }));
  write_cluster_file(run, settings);
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

TEST_CASE("a model of nothing and a model of one number are exchanged like any other") {
  for (const char* elements : {"0", "1"}) {
    CAPTURE(elements);
    for (const char* same_host : {"off", "auto"}) {
      ClusterRun run(2, std::string("gossip: {start_wait_ms: 60s, finish_wait_ms: 30s, "
                                    "firewall: {distance: warn}}\ntransport: {same_host: ") +
                            same_host + "}");
      run.start_all({"--step-ms", "4", "--elements", elements});
      CHECK(holds_in_time(
          [&] { return run.count("w1", 0, "mixed") > 3 && run.count("w2", 0, "mixed") > 3; }));
      REQUIRE(run.finishes_well());
      CHECK(run.last_line("w1")["checksum"] == run.last_line("w2")["checksum"]);
    }
  }
}

TEST_CASE("a node that is refused its memory says how much, and nothing is left of it") {
  ClusterRun run(2, settings);
  // 4 TiB of parameters: no machine has four times that beside it.
  run.start("w1", {"--elements", "1099511627776"});
  CHECK(run.wait("w1") == 1);
  INFO(run.log("w1"));
  CHECK(said(run, "w1", "out of memory"));
}

}  // namespace dpwa

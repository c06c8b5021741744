#include <doctest/doctest.h>

#include <algorithm>

#include "dpwa/net/free_ports.h"
#include "test/launch/launched_run.h"

// dpwa-train with the variables that launchers set, and no launcher.
namespace dpwa {
namespace {

using test::LaunchedRun;
using Words = LaunchedRun::Words;

// As many processes, with RANK and its like.
class Processes {
 public:
  Processes(const LaunchedRun& run, int size)
      : run_(run), size_(size), port_(net::free_ports(1).front()) {}

  void start_all() {
    for (int rank = 0; rank < size_; ++rank) {
      started_.push_back(
          run_.start({}, {},
                     {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size_),
                      "MASTER_ADDR=localhost", "MASTER_PORT=" + std::to_string(port_)}));
    }
  }
  std::vector<int> codes() {
    std::vector<int> codes;
    for (auto& process : started_)
      codes.push_back(process.wait(test::launch_patience).value_or(-1));
    return codes;
  }

 private:
  const LaunchedRun& run_;
  int size_;
  std::uint16_t port_;
  std::vector<test::ChildProcess> started_;
};

// What `dpwa config check` says of a file, and its exit code.
std::pair<int, std::string> check(const std::filesystem::path& file) {
  const test::TemporaryDirectory folder;
  test::ChildProcess process({DPWA_CLI, "config", "check", file.string()}, folder / "out");
  const int code = process.wait(test::launch_patience).value_or(-1);
  return {code, test::read_text(folder / "out")};
}

using Codes = std::vector<int>;

}  // namespace

TEST_CASE("processes with RANK and WORLD_SIZE train together without a list of nodes") {
  for (const char* backend : {"gossip", "collective"}) {
    CAPTURE(backend);
    const LaunchedRun run("backend: " + std::string(backend) + "\n");
    Processes processes(run, 3);
    processes.start_all();
    const auto codes = processes.codes();
    INFO(run.log());
    REQUIRE(codes == Codes{0, 0, 0});
    CHECK(run.all_agree(3));
    CHECK(run.result(1)["backend"] == backend);
  }
}

TEST_CASE("under backend null each process has its shard, and rank 0 leaves the nodes in a file") {
  const LaunchedRun run("cluster: mine\nbackend: null\n");
  Processes processes(run, 2);
  processes.start_all();
  REQUIRE(processes.codes() == Codes{0, 0});
  CHECK(run.result(0)["test_loss"] != run.result(1)["test_loss"]);
  CHECK(test::has(run.log(), "shard 2 of 2"));
  const auto [code, text] = check(run.folder() / "cluster.yaml");
  CHECK(code == 0);
  CHECK(test::has(text, "cluster mine, 2 nodes"));
  CHECK(test::has(text, "{name: rank1, host: 127.0.0.1, port: "));
  const auto [own_code, own_text] = check(run.file());
  CHECK(own_code == 0);
  CHECK(test::has(own_text, "nodes come from the launcher"));
}

TEST_CASE("what is wrong with a launcher's variables is one line and exit code 2") {
  const LaunchedRun run("backend: gossip\n");
  const auto code_of = [&run](const Words& environment) {
    return run.start({}, {}, environment).wait(test::launch_patience);
  };
  CHECK(code_of({"RANK=1"}) == 2);
  CHECK(code_of({"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=1"}) == 2);
  CHECK(code_of({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost"}) == 2);
  CHECK(code_of({}) == 2);
  const std::string log = run.log();
  CHECK(std::count(log.begin(), log.end(), '\n') == 4);
  CHECK(log.find("dpwa-train: environment: WORLD_SIZE: not set, though RANK is set; ") == 0);
  CHECK(test::has(log, "environment: RANK: there is no rank 2 among 2 (WORLD_SIZE); "));
  CHECK(test::has(log, "nodes: missing; accepted: a list of "));
}

}  // namespace dpwa

#include <doctest/doctest.h>

#include <algorithm>

#include "dpwa/net/free_ports.h"
#include "test/launch/launched_run.h"

// dpwa-train with the variables that launchers set, and no launcher.
namespace dpwa {
namespace {

using test::LaunchedRun;
using Words = LaunchedRun::Words;

// As many processes, with RANK and its like beside `common`.
class Processes {
 public:
  Processes(const LaunchedRun& run, int size, const Words& common = {})
      : run_(run), size_(size), common_(common), port_(net::free_ports(1).front()) {}

  void start(int rank, const Words& more = {}, int port_offset = 0) {
    Words environment = common_;
    environment.push_back("RANK=" + std::to_string(rank));
    environment.push_back("WORLD_SIZE=" + std::to_string(size_));
    environment.emplace_back("MASTER_ADDR=localhost");
    environment.push_back("MASTER_PORT=" + std::to_string(port_ + port_offset));
    started_.push_back(run_.start({}, more, environment));
  }
  void start_all() {
    for (int rank = 0; rank < size_; ++rank) start(rank);
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
  Words common_;
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

TEST_CASE("pods of an Indexed Job train together") {
  const LaunchedRun run("backend: gossip\n");
  const auto port = std::to_string(net::free_ports(1).front());
  std::vector<test::ChildProcess> pods;
  for (const char* index : {"0", "1"}) {
    pods.push_back(run.start(
        {}, {},
        {"JOB_COMPLETION_INDEX=" + std::string(index), "WORLD_SIZE=2",
         "KUBERNETES_SERVICE_HOST=10.96.0.1", "MASTER_ADDR=localhost", "MASTER_PORT=" + port}));
  }
  for (auto& pod : pods) {
    const auto code = pod.wait(test::launch_patience);
    INFO(run.log());
    REQUIRE(code == 0);
  }
  CHECK(run.all_agree(2));
}

TEST_CASE("under backend null each process trains on its own shard") {
  const LaunchedRun run("backend: null\n");
  Processes processes(run, 2);
  processes.start_all();
  const auto codes = processes.codes();
  INFO(run.log());
  REQUIRE(codes == Codes{0, 0});
  CHECK(run.result(0)["test_loss"] != run.result(1)["test_loss"]);
  CHECK(run.log().find("shard 2 of 2") != std::string::npos);
}

TEST_CASE("rank 0 leaves a cluster file with the nodes in the folder of the run") {
  const LaunchedRun run("cluster: mine\n");
  Processes processes(run, 2);
  processes.start_all();
  REQUIRE(processes.codes() == Codes{0, 0});
  const auto [code, text] = check(run.folder() / "cluster.yaml");
  CHECK(code == 0);
  CHECK(text.find("cluster mine, 2 nodes") != std::string::npos);
  CHECK(text.find("{name: rank1, host: 127.0.0.1, port: ") != std::string::npos);
  const auto [own_code, own_text] = check(run.file());
  CHECK(own_code == 0);
  CHECK(own_text.find("nodes come from the launcher") != std::string::npos);
}

TEST_CASE("the rank counts the nodes of a file that lists them") {
  const auto ports = net::free_ports(2);
  const LaunchedRun run("nodes: [{name: rank1, port: " + std::to_string(ports[0]) +
                        "}, {name: rank0, port: " + std::to_string(ports[1]) + "}]\n");
  Processes processes(run, 2);
  processes.start_all();
  const auto codes = processes.codes();
  INFO(run.log());
  REQUIRE(codes == Codes{0, 0});
  CHECK(run.log().find("[rank1] train: training on 6000 of 12000 samples: shard 1 of 2") !=
        std::string::npos);
  Processes three(run, 3);
  three.start(0);
  CHECK(three.codes() == Codes{2});
  CHECK(run.log().find("nodes: the file lists 2, and the environment has started 3 processes; ") !=
        std::string::npos);
}

TEST_CASE("a name on the command line counts more than a launcher") {
  const LaunchedRun run("nodes: [{name: w1, port: " + std::to_string(net::free_ports(1).front()) +
                        "}]\n");
  Processes processes(run, 7);
  processes.start(9, {"--name", "w1"});
  const auto codes = processes.codes();
  INFO(run.log());
  CHECK(codes == Codes{0});
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
  CHECK(log.find("environment: RANK: there is no rank 2 among 2 (WORLD_SIZE); ") !=
        std::string::npos);
  CHECK(log.find("nodes: missing; accepted: a list of ") != std::string::npos);
}

TEST_CASE("two processes of one rank end with 1 and the same line, and so does the third") {
  const LaunchedRun run("backend: collective\n");
  Processes processes(run, 3);
  processes.start(0);
  processes.start(1);
  processes.start(1);
  CHECK(processes.codes() == Codes{1, 1, 1});
  const std::string line = "two processes joined as rank 1\n";
  const std::string log = run.log();
  std::size_t count = 0;
  for (auto at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++count;
  CHECK(count == 3);
}

}  // namespace dpwa

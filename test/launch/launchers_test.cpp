#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "test/launch/launched_run.h"
#include "test/support/eventually.h"

// dpwa-train under the launchers themselves, where they are installed.
namespace dpwa {
namespace {

using test::installed;
using test::LaunchedRun;
using Words = LaunchedRun::Words;

Words torchrun(int processes, const Words& more = {}) {
  const std::string program = DPWA_TORCHRUN;
  if (program.ends_with("NOTFOUND") && installed("torchrun").empty()) return {};
  Words command{program.ends_with("NOTFOUND") ? installed("torchrun") : program,
                "--no-python",
                "--rdzv-backend=c10d",
                "--rdzv-endpoint=localhost:0",
                "--nnodes=1",
                "--nproc-per-node=" + std::to_string(processes)};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

Words mpirun(int processes) {
  const std::string program = installed("mpirun");
  if (program.empty()) return {};
  Words command{program, "--oversubscribe", "-np", std::to_string(processes)};
  if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  return command;
}

void check_training(const Words& launcher) {
  if (launcher.empty()) return;
  for (const char* backend : {"gossip", "collective"}) {
    CAPTURE(backend);
    const LaunchedRun run("backend: " + std::string(backend) + "\n");
    const auto code = run.start(launcher, {}).wait(test::launch_patience);
    INFO(run.log());
    REQUIRE(code == 0);
    CHECK(run.all_agree(3));
  }
}

bool without_mpi() {
  if (*DPWA_MPIEXEC != '\0') return false;
  std::puts("SKIPPED: this build is without MPI");
  return true;
}

// The id of one training process, from /proc: the child of `launcher` with that rank.
pid_t process_of_rank(const LaunchedRun& run, int rank, const std::string& name = "RANK") {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string id = entry.path().filename();
    if (id.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = test::read_text(entry.path() / "cmdline");
    if (words.find(DPWA_TRAIN) != 0 || words.find(run.file()) == std::string::npos) continue;
    const std::string environment = '\0' + test::read_text(entry.path() / "environ");
    const std::string variable = '\0' + name + "=" + std::to_string(rank) + '\0';
    if (test::has(environment, variable)) return std::stoi(id);
  }
  return 0;
}

}  // namespace

TEST_CASE("mpirun starts the nodes of a file that lists none") {
  check_training(mpirun(3));
}

TEST_CASE("under mpirun the engine mpi trains one model on all nodes") {
  const Words launcher = mpirun(3);
  if (launcher.empty() || without_mpi()) return;
  const LaunchedRun run("backend: collective\ncollective: {engine: mpi}\n");
  const auto code = run.start(launcher, {}).wait(test::launch_patience);
  INFO(run.log());
  REQUIRE(code == 0);
  CHECK(run.all_agree(3));
  CHECK(test::has(run.log(), "collective: engine mpi: Open MPI v"));
  CHECK(test::has(run.log(), "rank 2 of 3 (rank0, rank1, rank2), view 1, engine mpi, at clock 0"));
}

TEST_CASE("a rank that dies under the engine mpi ends the others with one line that names it") {
  Words launcher = mpirun(3);
  if (launcher.empty() || without_mpi()) return;
  launcher.emplace_back("--enable-recovery");  // else mpirun ends them before they can say a word
  const LaunchedRun run(
      "backend: collective\ncollective: {engine: mpi}\ngossip: {membership: {suspect_ms: 1500}}\n");
  auto job = run.start(launcher, {"--steps", "3000", "--step-time", "10"});
  REQUIRE(test::eventually([&] { return run.metrics_lines(1) > 20; }, test::launch_patience));
  const pid_t victim = process_of_rank(run, 1, "OMPI_COMM_WORLD_RANK");
  REQUIRE(victim > 0);
  ::kill(victim, SIGKILL);
  const auto code = job.wait(test::launch_patience);
  INFO(run.log());
  CHECK(code.has_value());
  const std::string log = run.log();
  const std::string line = "because backend collective needs every node: ";
  const auto first = log.find(line);
  REQUIRE(first != std::string::npos);
  CHECK(log.find(line, first + 1) != std::string::npos);
  // A rank that looks late may find another one that has ended for the same reason.
  CHECK(test::has(log, line + "'rank1' is no longer running\n"));
}

TEST_CASE("after a death torchrun starts all ranks again, and they go on from their checkpoints") {
  const Words launcher = torchrun(3, {"--max-restarts=1", "--monitor-interval=0.1"});
  if (launcher.empty()) return;
  const LaunchedRun run("backend: collective\n");
  std::filesystem::create_directories(run.folder() / "points");
  auto agent = run.start(
      launcher, {"--steps", "300", "--step-time", "10", "--checkpoint",
                 (run.folder() / "points").string(), "--checkpoint-every", "20", "--resume"});
  const bool trains =
      test::eventually([&] { return run.metrics_lines(1) > 40 || !agent.running(); },
                       test::launch_patience) &&
      agent.running();
  REQUIRE_MESSAGE(trains, run.log());
  const pid_t victim = process_of_rank(run, 1);
  REQUIRE(victim > 0);
  ::kill(victim, SIGKILL);
  const auto code = agent.wait(test::launch_patience);
  INFO(run.log());
  REQUIRE(code == 0);
  CHECK(test::has(run.log(), "resumed from "));
  CHECK(run.result(0)["clock"] == 300);
  CHECK(run.all_agree(3));
}

}  // namespace dpwa

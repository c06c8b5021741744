#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <tuple>

#include "dpwa/net/free_ports.h"
#include "test/examples/trainer_process.h"
#include "test/support/eventually.h"

// The signals that end a program, or take its machine away.

using namespace dpwa;
using namespace dpwa::test;

namespace {

// A signal to the process that none of its threads has taken yet.
bool is_pending(pid_t process, int number) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (word != "ShdPnd:") continue;
    std::uint64_t set = 0;
    status >> std::hex >> set;
    return (set >> (number - 1) & 1) != 0;
  }
  return false;
}

}  // namespace

TEST_CASE_FIXTURE(Trainer,
                  "SIGTERM, SIGINT and the notice of a preemption end a run after its step with "
                  "checkpoint and result") {
  for (const int number : {SIGTERM, SIGINT, SIGUSR2}) {
    const std::string run = "run" + std::to_string(number);
    const std::string checkpoints = (dir / ("checkpoints" + std::to_string(number))).string();
    const Arguments options{"--steps", "100000", "--step-time", "5", "--checkpoint", checkpoints};
    auto process = start(command(run, options));
    const auto metrics = dir / run / "w1.metrics.jsonl";
    REQUIRE(test::eventually([&] { return !test::read_text(metrics).empty(); }, until_it_trains));
    process.signal(number);
    CHECK(process.wait() == (number == SIGINT ? 130 : 143));
    const json outcome = result(run);
    CHECK(outcome["interrupted"] == true);
    CHECK(outcome["preempted"] == (number == SIGUSR2));
    const std::uint64_t steps = outcome["steps"];
    CHECK(losses(run).size() == steps);
    CHECK(std::filesystem::exists(std::filesystem::path(checkpoints) /
                                  ("w1." + std::to_string(steps) + ".ckpt")));
    CHECK(train(run, {"--steps", std::to_string(steps + 3), "--checkpoint", checkpoints,
                      "--resume"}) == 0);
    CHECK(losses(run).size() == steps + 3);
  }
}

TEST_CASE_FIXTURE(Trainer, "a second signal ends the process at once") {
  auto process = start(command("run", {"--steps", "10", "--step-time", "60000"}));
  // The metrics file is opened just before training starts.
  const auto metrics = dir / "run/w1.metrics.jsonl";
  REQUIRE(test::eventually([&] { return std::filesystem::exists(metrics); }, until_it_trains));
  process.signal(SIGINT);
  REQUIRE(test::eventually([&] { return !is_pending(process.id(), SIGINT); }));  // two would merge
  process.signal(SIGINT);
  CHECK(process.wait() == 130);
}

TEST_CASE_FIXTURE(Trainer, "a signal before training ends a program with a line") {
  const auto ports = net::free_ports(2);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + std::to_string(ports[0]) +
                                             "}, {name: w2, port: " + std::to_string(ports[1]) +
                                             "}]\ngossip: {min_nodes: 2, start_wait_ms: 5m}\n");
  const std::string file = (dir / "cluster.yaml").string();
  for (const auto& [program, number, words] :
       {std::tuple(DPWA_TRAIN, SIGINT, "dpwa-train: ended by SIGINT\n"),
        std::tuple(DPWA_SVI, SIGTERM, "dpwa-svi: ended by SIGTERM\n")}) {
    CAPTURE(words);
    auto process =
        start({program, "--config", file, "--name", "w1", "--data", "synthetic"}, "interrupted");
    const auto text = [&] { return test::read_text(dir / "interrupted"); };
    REQUIRE(test::eventually([&] { return text().find(": shard 1 of 2") != std::string::npos; },
                             until_it_trains));
    process.signal(number);
    CHECK(process.wait() == 128 + number);
    INFO(text());
    CHECK(text().ends_with(words));
  }
}

TEST_CASE_FIXTURE(Trainer, "a signal ends --find-batch with a line") {
  auto process = start(command("run", {"--find-batch", "--model", "resnet18"}));
  REQUIRE(test::eventually([&] { return said("fits\n       1 "); }, until_it_trains));
  process.signal(SIGINT);
  CHECK(process.wait() == 130);
  CHECK(output().ends_with("dpwa-train: ended by SIGINT\n"));
}

TEST_CASE_FIXTURE(Trainer, "the notice of a preemption ends a node that waits for the others") {
  std::string settings;
  int code_of_other = 143;
  SUBCASE("gossip") {
    settings = "gossip: {finish_wait_ms: 10m}\n";
  }
  SUBCASE("collective: all end") {
    settings = "backend: collective\n";
    code_of_other = 1;
  }
  SUBCASE("collective: the others go on") {
    settings = "backend: collective\ncollective: {on_lost_rank: shrink}\n";
  }
  const auto ports = net::free_ports(2);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + std::to_string(ports[0]) +
                                             "}, {name: w2, port: " + std::to_string(ports[1]) +
                                             "}]\n" + settings);
  const auto of = [&](const char* name, Arguments more) {
    more.insert(more.end(), {"--split", "dirichlet:1", "--schedule", "constant", "--quiet",
                             "--checkpoint", dir.path().string()});
    Arguments words = command("run", more);
    *std::ranges::find(words, "w1") = name;
    return start(words, name);
  };
  auto first = of("w1", {"--steps", "5"});
  auto other = of("w2", {"--steps", "1000000", "--step-time", "20"});
  INFO(settings);
  const auto result_of_first = dir / "run/w1.result.json";
  // It is written before the wait, and once more at the end.
  REQUIRE(
      test::eventually([&] { return std::filesystem::exists(result_of_first); }, until_it_trains));
  first.signal(SIGUSR2);
  CHECK(first.wait() == 143);
  INFO(test::read_text(dir / "w1") << test::read_text(dir / "w2"));
  CHECK(result("run")["preempted"] == true);
  CHECK(result("run")["averaged_model"].is_null());
  CHECK(std::filesystem::exists(dir / "w1.5.ckpt"));
  const auto steps = [&] {
    return std::ranges::count(test::read_text(dir / "run/w2.metrics.jsonl"), '\n');
  };
  const auto before = steps();
  if (code_of_other == 143) {
    REQUIRE(test::eventually([&] { return steps() > before + 5; }, until_it_trains));
    other.signal(SIGTERM);
  }
  CHECK(other.wait() == code_of_other);
}

TEST_CASE_FIXTURE(Trainer, "SIGHUP before main() ends no program that reads its file again") {
  const std::string preload = std::string("LD_PRELOAD=") + DPWA_EARLY_HANG_UP;
  for (const char* program : {DPWA_TRAIN, DPWA_SVI}) {
    CAPTURE(program);
    CHECK(start({"/usr/bin/env", preload, program, "--version"}).wait() == 0);
    CHECK(said(" 0."));
  }
  CHECK(start({"/usr/bin/env", preload, "/bin/sleep", "9"}).wait() == -SIGHUP);
}
